"""RTP and RTCP as real bytes: the engine's own codecs, for tools and tests in Python."""

from tidegate._core import decode, decode_rtp, encode, encode_rtp

__all__ = ["decode", "decode_rtp", "encode", "encode_rtp"]
