"""What travels over networks, and recordings of them: traces of capacity, wire formats, timing of RTCP."""
