"""Packets and recordings of networks: traces of capacity, wire formats, timing of RTCP."""
