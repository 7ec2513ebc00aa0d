"""A run, and a comparison, as tables in a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from tidegate.cli.tables import console, plain_table, print_table
from tidegate.results.metrics import COUNTED, HEADLINE, MEMBERS, PICTURES, metric
from tidegate.results.quality import verdict_on
from tidegate.runs import Run
from tidegate.show import played, view
from tidegate.show.table import LINKS, ComparisonTable


def print_run(done: Run) -> None:
    """Prints its flows, its sessions and its links."""
    to = console()
    to.print(f"{done.name}, seed {done.seed}, digest {done.digest}\n")
    flows = view.point_to_point(done)
    shown = [name for name in (*HEADLINE, *COUNTED, *PICTURES) if any(flow.get(name) is not None for flow in flows)]
    heads = ["flow", "controller", *(_head(name) for name in shown), _head("quality")]
    told = [
        [
            str(flow["flow"]),
            str(flow.get("controller") or flow["kind"]),
            *(metric(name).show(flow.get(name)) for name in shown),
            verdict_on([flow]),
        ]
        for flow in flows
    ]
    # a few flows stand side by side, as controllers do in a comparison; many are a line each
    lines = [list(line) for line in zip(heads, *told, strict=True)] if len(flows) <= _SIDE_BY_SIDE else [heads, *told]
    table = plain_table(*lines[0])
    for line in lines[1:]:
        table.add_row(*line)
    if flows:
        print_table(table)
        to.print()
    for session, members in view.sessions(done.summary).items():
        _print_members(session, members)
        to.print()
    if not done.summary["links"]:
        return  # of a recorded call nobody knows them
    every = done.summary["links"]
    marks = any(link.get("marked") for link in every)
    # of a recorded call's link nobody knows more than its capacity, where that is a scenario's
    names = [name for name in LINKS if any(name in link for link in every) and (name != "marked" or marks)]
    links = plain_table("link", *(_head(name) for name in names))
    for link in every:
        links.add_row(link["link"], *(metric(name).show(link.get(name)) for name in names))
    print_table(links)
    print_recordings([done.summary])


def print_too_little(table: ComparisonTable) -> None:
    """Prints who carried too little to be compared by delay, loss and freezes."""
    if table.too_little:
        console().print("\n" + "\n".join(f"{name} {why}" for name, why in table.too_little.items()))


def print_recordings(summaries: Iterable[Mapping[str, Any]]) -> None:
    """Prints how much of each recorded network was played, if there is one."""
    if told := played.told(summaries):
        console().print("\n" + "\n".join(told))


_MEMBERS_SHOWN = 20
_SIDE_BY_SIDE = 8  # flows of a run


def _print_members(session: str, members: Sequence[Mapping[str, Any]]) -> None:
    total = view.session_sums(members)
    shown = [name for name in MEMBERS if any(one.get(name) is not None for one in members)]
    table = plain_table(session, "profile", *(_head(name) for name in shown))
    for one in members[:_MEMBERS_SHOWN]:
        table.add_row(one["member"], one["profile"], *(metric(name).show(one.get(name)) for name in shown))
    if len(members) > _MEMBERS_SHOWN:
        table.add_row(f"and {len(members) - _MEMBERS_SHOWN} more", "", *([""] * len(shown)))
    table.add_row("all", "", *(metric(name).show(total[name]) for name in shown))
    print_table(table)


def _head(name: str) -> str:
    one = metric(name)
    return f"{one.label} ({one.unit})" if one.unit else one.label


def comparison_table(table: ComparisonTable) -> Table:
    """The comparison, the best value of each row with a star: in bold green where it is sure, else with a `?`."""
    shown = plain_table("", *table.controllers, "unit")
    for row in table.rows:
        cells = []
        for name in table.controllers:
            best = name in row.best.labels
            mark = f"*{' ' if row.best.sure else '?'}" if best else "  "
            style = "bold green" if best and row.best.sure else "dim" if name in row.out else ""
            cells.append(Text(f"{table.cell(row, name)} {mark}", style))
        shown.add_row(row.label, *cells, row.metric.unit)
    if table.verdicts:
        shown.add_row(metric("quality").label, *(_answer(table.verdicts[name]) for name in table.controllers), "")
    return shown


_ANSWER = 24
"""Letters of an answer that is not broken into lines: such as `no: delay at the sender`."""


def _answer(verdict: str) -> str:
    if len(verdict) > _ANSWER:
        verdict = verdict.replace("; ", ";\n").replace(", else ", ",\nelse ")
    return "\n".join(f"{line}   " for line in verdict.splitlines())
