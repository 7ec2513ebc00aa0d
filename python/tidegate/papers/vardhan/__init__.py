"""Vardhan and Reddy: UDP and TFRC against TCP."""
