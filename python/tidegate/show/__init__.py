"""Runs as figures, HTML reports and tables."""
