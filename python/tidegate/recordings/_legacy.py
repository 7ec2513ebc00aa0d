"""Translation of getStats with a callback (Chrome before 117) into W3C's webrtc-stats.

Names, units and what is counted: `pc/legacy_stats_collector.cc` and `api/legacy_stats_types.cc` of libwebrtc. Values
are texts; bytes of a stream have its headers in them (`ExtractCommonSendProperties`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate.recordings._stats import Connection, Stat, as_number

_ID = re.compile(r"ssrc_\d+_(?P<way>send|recv)")
_PAIR_ID = re.compile(r"Conn-.*")

Members = Mapping[str, tuple[str, float]]
"""Names of W3C, and the factor from the old unit to W3C's, by old names."""

_SENT: Members = {
    "packetsSent": ("packetsSent", 1),
    "bytesSent": ("bytesSent", 1),
    "framesEncoded": ("framesEncoded", 1),
    "googFrameHeightSent": ("frameHeight", 1),
    "googNacksReceived": ("nackCount", 1),
    "googPlisReceived": ("pliCount", 1),
}
_REPORTED: Members = {
    "packetsLost": ("packetsLost", 1),
    "googRtt": ("roundTripTime", 1e-3),
    "googJitterReceived": ("jitter", 1e-3),
}
_RECEIVED: Members = {
    "packetsReceived": ("packetsReceived", 1),
    "packetsLost": ("packetsLost", 1),
    "bytesReceived": ("bytesReceived", 1),
    "framesDecoded": ("framesDecoded", 1),
    "googFrameHeightReceived": ("frameHeight", 1),
    "googJitterReceived": ("jitter", 1e-3),
    "googNacksSent": ("nackCount", 1),
    "googPlisSent": ("pliCount", 1),
}
_PAIR: Members = {
    "bytesSent": ("bytesSent", 1),
    "bytesReceived": ("bytesReceived", 1),
    "googRtt": ("currentRoundTripTime", 1e-3),
}
_ESTIMATE = "googAvailableSendBandwidth"
_OF_STREAM = ("ssrc", "mediaType")


def translate(connection: Connection) -> None:
    """Adds streams, pairs and candidates in W3C's terms, where a connection has only old ones."""
    if connection.streams():
        return
    old = list(connection.stats.values())
    streams = [(stat, match["way"]) for stat in old if (match := _ID.fullmatch(stat.id)) is not None]
    if not streams:
        return
    for stat, way in streams:
        if way == "send":
            _add(connection, stat, "outbound-rtp", _SENT, "headerBytesSent")
            _add(connection, stat, "remote-inbound-rtp", _REPORTED)
        else:
            _add(connection, stat, "inbound-rtp", _RECEIVED, "headerBytesReceived")
    pairs = [stat for stat in old if stat.type == "googCandidatePair" or _PAIR_ID.fullmatch(stat.id)]
    pair = max(pairs, key=lambda stat: (_is_active(stat), stat.last_number("bytesSent") or 0.0), default=Stat("Conn"))
    new = _add(connection, pair, "candidate-pair", _PAIR)
    for stat in old:
        if _ESTIMATE in stat.members:
            # the estimate is of the connection; W3C has it with the pair in use
            new.reports = stat.reports
            new.members["availableOutgoingBitrate"] = stat.members[_ESTIMATE]
    times, addresses = pair.members.get("googLocalAddress", ([], []))
    if addresses and isinstance(addresses[-1], str):
        # an address with its port; that of IPv6 stands in brackets
        local = connection.stat(f"local-candidate {pair.id}")
        local.type = "local-candidate"
        local.members["address"] = (times[-1:], [addresses[-1].rpartition(":")[0].strip("[]")])
        new.members["localCandidateId"] = (times[-1:], [local.id])


def _is_active(pair: Stat) -> bool:
    return pair.last("googActiveConnection") in (True, "true")


def _add(connection: Connection, old: Stat, type_name: str, members: Members, headers: str | None = None) -> Stat:
    new = connection.stat(f"{type_name} {old.id}")
    new.type, new.reports = type_name, old.reports
    for name, (name_now, factor) in members.items():
        series = [
            (time, number * factor)
            for time, text in zip(*old.members.get(name, ([], [])), strict=True)
            # what is not known, such as a round trip before the first report, is -1
            if (number := as_number(text)) is not None and number >= 0
        ]
        if series:
            new.members[name_now] = ([time for time, _ in series], [number for _, number in series])
            if headers is not None and name.startswith("bytes"):
                new.members[headers] = ([time for time, _ in series], [0.0] * len(series))
    for name in _OF_STREAM:
        if name in old.members:
            new.members[name] = old.members[name]
    return new
