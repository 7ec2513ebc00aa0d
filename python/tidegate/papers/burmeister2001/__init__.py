"""Burmeister, Hakenberg, Miyazaki, Ott, Sato and Fukunaga: the timing rules of RTP/AVPF."""
