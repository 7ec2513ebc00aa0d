"""Congestion control issues in real-time communication: "Sprout" an example (Hermanns, IETF 88, 2013)."""
