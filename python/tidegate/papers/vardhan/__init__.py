"""Vardhan and Reddy: UDP and TFRC beside TCP."""
