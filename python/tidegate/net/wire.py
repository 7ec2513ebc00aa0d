"""RTP and RTCP as real bytes: the engine's own codecs, for tools and tests in Python.

>>> (packet,) = decode(encode([Pli(1, 2)]))
>>> packet.media_ssrc
2
"""

from tidegate._core import (
    App,
    Bye,
    Ccfb,
    EcnFeedback,
    ExtendedReport,
    Fir,
    Nack,
    Pli,
    ReceiverReport,
    Remb,
    ReportBlock,
    Rtp,
    Sdes,
    SenderReport,
    Sli,
    Twcc,
    TwccBuilder,
    Unknown,
    decode,
    decode_rtp,
    encode,
    encode_rtp,
)

__all__ = [
    "App",
    "Bye",
    "Ccfb",
    "EcnFeedback",
    "ExtendedReport",
    "Fir",
    "Nack",
    "Pli",
    "ReceiverReport",
    "Remb",
    "ReportBlock",
    "Rtp",
    "Sdes",
    "SenderReport",
    "Sli",
    "Twcc",
    "TwccBuilder",
    "Unknown",
    "decode",
    "decode_rtp",
    "encode",
    "encode_rtp",
]
