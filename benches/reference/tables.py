"""Write the tables of docs/reference-tcp.md from tcp_reference.csv, between the page's two marker lines."""

import csv
import statistics
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parents[1] / "docs" / "reference-tcp.md"
BEGIN, END = "<!-- tables: benches/reference/tables.py -->", "<!-- end of tables -->"


def numbers(text):
    """The values of a cell that has one per flow."""
    return [float(word) for word in text.split(";")]


def share(row):
    """What the first flow has of all the goodput, percent."""
    flows = numbers(row["goodput_mbps"])
    return 100 * flows[0] / sum(flows)


def column(name, factor=1.0):
    return lambda row: factor * float(row[name])


def spread(values, digits):
    """Mean, and the range where the runs differ in the digits shown."""
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if low == high else f"{mean} ({low} to {high})"


def table(rows, keys, figures):
    """A Markdown table: one line for each combination of the key columns, in order of appearance.

    `figures` are (heading, function of a row, digits); `keys` are (heading, column).
    """
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for _, name in keys)].append(row)
    head = [heading for heading, *_ in (*keys, *figures)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(keys) + "--:|" * len(figures)]
    for key, group in groups.items():
        cells = [spread([figure(row) for row in group], digits) for _, figure, digits in figures]
        lines.append("| " + " | ".join((*key, *cells)) + " |")
    return "\n".join(lines)


TOOL, VARIANT, DELACK = ("tool", "tool"), ("variant", "variant"), ("delayed ACK", "delack")
QUEUE, ONE_WAY = ("queue, packets", "queue_packets"), ("one way, ms", "one_way_ms")
LINK = (
    ("utilisation, %", column("utilisation", 100), 2),
    ("loss, %", column("loss_fraction", 100), 4),
    ("queueing delay, mean, ms", column("mean_qdelay_ms"), 2),
    ("p95, ms", column("p95_qdelay_ms"), 2),
)
SHARE = ("first flow's share, %", share, 1)
TOTAL = ("goodput together, Mb/s", lambda row: sum(numbers(row["goodput_mbps"])), 3)
TIMEOUTS = ("timeouts", lambda row: sum(numbers(row["timeouts"])), 0)
MATHIS = (
    ("measured / Mathis", column("mathis_ratio"), 3),
    ("loss met, %", column("loss_fraction", 100), 3),
    TIMEOUTS,
)
SECTIONS = (
    ("base", "One flow: 10 Mb/s, 20 ms one way, 33 packets, seconds 20 to 120", (TOOL, VARIANT, DELACK), LINK),
    (
        "two_rtt",
        "Two flows, round trips of 40 and 120 ms: 10 Mb/s, 33 packets",
        (TOOL, VARIANT, ("jitter, ms", "jitter_ms"), ("until, s", "to_s")),
        (SHARE, TOTAL),
    ),
    (
        "same_rtt",
        "Two flows, both 40 ms: 10 Mb/s, seconds 20 to 300",
        (TOOL, VARIANT, QUEUE, ("jitter, ms", "jitter_ms")),
        (SHARE, TOTAL),
    ),
    (
        "mathis",
        "Random loss: round trip 120 ms, link never full, seconds 20 to 3000",
        (TOOL, VARIANT, DELACK, ("loss set", "random_loss")),
        MATHIS,
    ),
    (
        "min_rto",
        "Least retransmission timeout (drop-tail 10 and 33 packets first, then random loss)",
        (TOOL, VARIANT, QUEUE, ("loss set", "random_loss"), ("min RTO, s", "min_rto_s")),
        (("goodput, Mb/s", lambda row: float(row["goodput_mbps"]), 4), TIMEOUTS),
    ),
    (
        "startup",
        "The first 10 seconds, by initial window: 10 Mb/s, 20 ms, 33 packets",
        (TOOL, VARIANT, DELACK, ("initial window", "iw")),
        LINK,
    ),
    (
        "download",
        "50 kB, SYN sent to last byte received, by initial window: 10 Mb/s, 33 packets",
        (TOOL, VARIANT, ONE_WAY, DELACK, ("initial window", "iw")),
        (("seconds", column("download_s"), 4),),
    ),
    (
        "grid",
        "Rates, queues and delays: one flow, seconds 20 to 120",
        (TOOL, VARIANT, ("rate, Mb/s", "rate_mbps"), QUEUE, ONE_WAY, DELACK),
        LINK,
    ),
)


def main():
    with (HERE / "tcp_reference.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    tables = []
    for experiment, title, keys, figures in SECTIONS:
        chosen = [row for row in rows if row["experiment"] == experiment]
        tables.append(f"### {title}\n\n{table(chosen, keys, figures)}\n")
    page = PAGE.read_text()
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join(tables) + f"\n{END}{after}")


if __name__ == "__main__":
    main()
