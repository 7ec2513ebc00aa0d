"""When a participant of an RTP session may send RTCP: the engine's own schedule, to replay sequences of decisions.

A [Schedule][tidegate.net.rtcp.Schedule] reads no clock and draws no number. Its times and spans are whole nanoseconds
([Duration][tidegate.units.Duration] is one), bandwidth is in bit/s ([Rate][tidegate.units.Rate]), sizes are bytes with
IP and UDP headers. Pseudo-random numbers from 0 to 1 come from `uniform`, a callable or any iterable, in the order in
which the RFCs draw them: one for each interval T computed, at reconsideration and anew after each packet (RFC 3550
section 6.3.6); one for each early packet scheduled (RFC 4585 section 3.5.2, step 4b); one for T_rr_current_interval
(section 3.5.3, step 2). A call that fails changes nothing.

Two members who hear nothing of each other, at 1 Mbit/s, with the mean for every random number:

>>> schedule = Schedule("avp", session_bandwidth=1_000_000, uniform=lambda: 0.5)
>>> schedule.join(0, members=2)
>>> schedule.deterministic, schedule.tn  # Td; and the first time, half the minimum over e - 3/2
(2500000000, 2052070335)
>>> schedule.expire(schedule.tn)
'regular'
>>> schedule.sent(schedule.tn, size=120)
>>> schedule.t_rr, schedule.average_size
(4104140670, 101.25)
>>> Schedule("avp", session_bandwidth=0, uniform=[])
Traceback (most recent call last):
...
ValueError: session_bandwidth: found 0; expected bit/s, more than 0
"""

from tidegate._core import Schedule

__all__ = ["Schedule"]
