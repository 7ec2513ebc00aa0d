"""Lissah and Mbise: a lookup table of gaps between packets."""
