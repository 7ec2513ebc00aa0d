"""The command paper, which repeats the experiments of a published document."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate import _shipped
from tidegate.cli.engines import EngineName, Scheduler, engine_of
from tidegate.cli.options import AsJson, Workers, refuse
from tidegate.cli.terminal import print_json, print_names, results_only, stoppable, typed
from tidegate.errors import InputError


def _keys(incomplete: str) -> list[str]:
    return [name for name in ["list", *_shipped.papers()] if name.startswith(incomplete)]


def paper(
    key: Annotated[
        str,
        typer.Argument(
            metavar="list|KEY",
            help="`list` to print the documents, a key from that list, or a folder of your own with a paper.toml.",
            autocompletion=_keys,
        ),
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Do a few seeds and short runs; the default.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Do all experiments of the document at full length.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the page, tables and figures; KEY-quick or KEY-full by default.")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds; by default as the paper says.")] = None,
    jobs: Workers = None,
    engine: EngineName = None,
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Repeat the experiments of a published document, and judge each of its numbers.

    Each claim agrees (within its tolerance), has the same trend, differs, or cannot be told, with the reason. With
    --json and without --out no file is written.

    Example: tidegate paper hoang2017 --quick --out out/hoang2017
    """
    if quick and full:
        raise InputError("--quick and --full: give one of them")
    if key == "list":
        how = {"--quick": quick, "--full": full, "--out": out, "--seeds": seeds}
        where = {"--jobs": jobs, "--engine": engine, "--scheduler": scheduler}
        refuse({**how, **where}, "list: the list runs nothing, so {} has no effect; give the key of a paper")
        _list(as_json=as_json)
        return
    with engine_of(engine, scheduler, jobs):
        _run(key, quick=not full, out=out, seeds=seeds, jobs=jobs, as_json=as_json)


def _list(*, as_json: bool) -> None:
    from tidegate.paper import list_papers

    all_papers = list_papers()
    if as_json:
        keys = ("title", "authors", "year", "kind", "source", "about")
        print_json(
            [
                {"key": entry.key, "claims": len(entry.claims), **{name: getattr(entry.paper, name) for name in keys}}
                for entry in all_papers
            ]
        )
        return
    names = {}
    for entry in all_papers:
        authors = ", ".join(entry.paper.authors)
        names[entry.key] = f"{entry.paper.title} ({authors}, {entry.paper.year}; {len(entry.claims)} claims)"
    print_names(names)


def _run(key: str, *, quick: bool, out: Path | None, seeds: int | None, jobs: int | None, as_json: bool) -> None:
    # matplotlib and all that are for this command only
    from tidegate import paper as papers
    from tidegate.output.terminal import console, progress, show
    from tidegate.paper import shipped, words
    from tidegate.results.folders import check_folder

    name = shipped.find(key).resolve().name
    if out is None and not as_json:
        out = Path(f"{name}-{'quick' if quick else 'full'}")
    if out is not None:
        check_folder(out, papers.PAPER_FILE)
    with results_only(), stoppable("stopped; nothing was written"), progress(name, visible=not as_json) as tell:
        result = papers.run(key, quick=quick, seeds=seeds, workers=jobs, progress=tell, command=typed())
        if out is not None:
            result.save(out)
    if as_json:
        print_json(result.to_data())
        return
    to, document = console(), result.document()
    to.print(f"{document.title}, {', '.join(document.facts)}\n")
    show(document)
    for judgement in words.differences(result.judgements):
        where, text, published, ours, deviation, verdict, reason = words.row(judgement)
        to.print(f"\n{verdict}: {where}, {text}", soft_wrap=True)
        if judgement.claim.agrees is None:
            to.print(f"  published {published}; ours {ours} ({deviation})", soft_wrap=True)
        else:
            to.print(f"  {published}; ours {ours}", soft_wrap=True)
        to.print(f"  {reason}", soft_wrap=True)
    to.print(f"\nwritten to {out}: index.html, README.md, paper.json, tables/, figures/", soft_wrap=True)
