"""What each measure of a suite is: name, unit, which direction is better, definition with its source."""

from __future__ import annotations

from tidegate.results.metrics import Metric

OF_FLOW: tuple[Metric, ...] = (
    Metric(
        "share_fraction",
        "share received",
        "%",
        "higher",
        "Bits received over bits of the flow's max-min fair share of what the links carried, from 5 s after "
        "its start to its end (RFC 8868 section 3, metric 10, with what it could have had instead of the "
        "whole capacity).",
        100.0,
        1,
    ),
    Metric(
        "share_min_5s",
        "share in the worst 5 s",
        "%",
        "higher",
        "Bits received over bits of its share in the worst 5 s in which it has something to send and a share,"
        " from 10 s after its start on (intervals of RFC 8868 section 3, metric 7).",
        100.0,
        1,
    ),
    Metric(
        "convergence_s_max",
        "slowest convergence",
        "s",
        "lower",
        "Longest time to converge of all events: its start or resumption, a new capacity of a link on its "
        "way, a flow that comes or goes there. A rate has converged when, in means over 1 s, it stays within "
        "25 % of the flow's share for 5 s; one that has not by the next event counts with the time until "
        "then. Events less than 5 s apart cannot be told (RFC 8868 section 3, metric 8, which leaves the rule"
        " open: this one is ours).",
        1.0,
        1,
    ),
    Metric(
        "convergence_s_mean",
        "mean convergence",
        "s",
        "lower",
        "Mean over all events of the time to converge, as in convergence_s_max (RFC 8868 section 3, metric 8).",
        1.0,
        1,
    ),
    Metric(
        "steady_oscillation_hz",
        "oscillation where nothing happens",
        "1/s",
        "lower",
        "Full swings of the sending rate, in means over 0.5 s, between 20 % under and 20 % over its mean in "
        "each static period, a second (RFC 8868 section 3, metric 9, which leaves the watermarks open).",
        1.0,
        3,
    ),
    Metric(
        "oscillation_bps",
        "size of oscillation",
        "Mbit/s",
        "lower",
        "From the 5 % to the 95 % quantile of the sending rate, in means over 0.5 s, in static periods of at "
        "least 5 s; their mean by length (RFC 8868 section 3, metric 9: size instead of given watermarks).",
        1e-06,
        2,
    ),
    Metric(
        "rate_std_fraction",
        "deviation of the rate",
        "%",
        "lower",
        "Standard deviation of the sending rate, in means over 0.5 s, over its mean, in static periods of at "
        "least 5 s; their mean by length (RFC 8868 section 3: statistical measures).",
        100.0,
        1,
    ),
    Metric(
        "receive_rate_min_bps",
        "rate in the worst 5 s",
        "Mbit/s",
        "higher",
        "Received rate in the worst 5 s in which it has something to send, from 10 s after its start on (RFC "
        "8867 section 5.6: worst-case minimum rate).",
        1e-06,
        3,
    ),
    Metric(
        "receive_rate_max_bps",
        "rate in the best 5 s",
        "Mbit/s",
        "higher",
        "Received rate in the best 5 s in which it has something to send, from 10 s after its start on (RFC "
        "8867 section 5.8: flows are expected to reach the maximum media bit rate while another one pauses).",
        1e-06,
        3,
    ),
    Metric(
        "receive_rate_bin_min_bps",
        "least rate",
        "Mbit/s",
        "higher",
        "Least received rate of a bin (200 ms by default), from 5 s after its start on, pauses left out (RFC "
        "8868 section 3).",
        1e-06,
        2,
    ),
    Metric(
        "receive_rate_bin_max_bps",
        "largest rate",
        "Mbit/s",
        "neither",
        "Largest received rate of a bin (200 ms by default), from 5 s after its start on, pauses left out "
        "(RFC 8868 section 3).",
        1e-06,
        2,
    ),
    Metric(
        "receive_rate_bin_std_bps",
        "deviation of the received rate",
        "Mbit/s",
        "lower",
        "Standard deviation of the received rates of bins (200 ms by default), from 5 s after its start on, "
        "pauses left out (RFC 8868 section 3).",
        1e-06,
        2,
    ),
    Metric(
        "power",
        "power",
        "",
        "higher",
        "Kleinrock's power: the natural logarithm of the receive rate in Mbit/s over the 95th percentile of one-way "
        "delay in seconds, as Pantheon ranks schemes (Yan et al., USENIX ATC 2018).",
        1.0,
        2,
    ),
    Metric(
        "challenge_2021_score",
        "network score of the 2021 challenge",
        "",
        "higher",
        "0.2 delay + 0.2 receive rate + 0.3 loss, each 0 to 100: delay (400 ms - 95th percentile) / (400 ms - least),"
        " rate over the flow's share, loss what is not lost (MMSys 2021 grand challenge, OpenNetLab/challenge-HOWTO, "
        "README, Final Score; its rate is over that of an ideal network).",
        1.0,
        1,
    ),
)
"""Of flows."""

OF_RUN: tuple[Metric, ...] = (
    Metric(
        "fairness_min_1s",
        "fairness in 1 s",
        "",
        "higher",
        "Least ratio of the rates that two contenders receive in 1 s, over their priorities, of those that "
        "have a link in common and the same share; over windows in static periods, which begin 10 s after the"
        " last event (RFC 8868 section 3, metric 7: at least 0.333).",
        1.0,
        2,
    ),
    Metric(
        "fairness_min_5s",
        "fairness in 5 s",
        "",
        "higher",
        "Least ratio of the rates that two contenders receive in 5 s, over their priorities, of those that "
        "have a link in common and the same share; over windows in static periods, which begin 10 s after the"
        " last event (RFC 8868 section 3, metric 7: at least 0.333).",
        1.0,
        2,
    ),
    Metric(
        "fairness_min_20s",
        "fairness in 20 s",
        "",
        "higher",
        "Least ratio of the rates that two contenders receive in 20 s, over their priorities, of those that "
        "have a link in common and the same share; over windows in static periods, which begin 10 s after the"
        " last event (RFC 8868 section 3, metric 7: at least 0.333).",
        1.0,
        2,
    ),
    Metric(
        "jain_min_20s",
        "Jain's index in 20 s",
        "",
        "higher",
        "Least of Jain's index (Jain, Chiu and Hawe 1984) of what each contender received of its share, over "
        "windows of 20 s in static periods.",
        1.0,
        3,
    ),
    Metric(
        "cross_ratio_20s",
        "rate over cross traffic's",
        "",
        "neither",
        "Mean rate of contenders over that of TCP with data on their links, in whole windows of 20 s in "
        "static periods (RFC 8868 section 3, metric 7: relative ratio to cross-traffic streams).",
        1.0,
        2,
    ),
    Metric(
        "cross_rate_bps",
        "TCP's rate",
        "Mbit/s",
        "higher",
        "Sum of the received rates of all TCP flows (RFC 8867 sections 5.6 and 5.7).",
        1e-06,
        2,
    ),
    Metric(
        "delivered_fraction",
        "delivered of what was possible",
        "%",
        "higher",
        "Bits that all flows received over bits of all their shares, from 5 s after the first contender's start on.",
        100.0,
        1,
    ),
)
"""Of a run as a whole."""
