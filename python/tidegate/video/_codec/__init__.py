"""Codecs: what one is to the rest, and the two that there are."""
