"""The command play: a page on which one drags the capacity and sees the controllers react."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import raised
from tidegate.cli.completing import complete_controllers, scenarios
from tidegate.cli.options import Force, Seed, Sets, changes
from tidegate.cli.terminal import say, stoppable
from tidegate.errors import InputError

_DEFAULT = "home-broadband"
_MOST = 2  # that the page shows side by side


def play(
    scenario: Annotated[
        str, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
    ] = _DEFAULT,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONTROLLER",
            help="Whom the page begins with, such as gcc scream; by default the scenario's own controller and another.",
            autocompletion=complete_controllers,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the page instead: one file that works offline.")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where it is served; 0 for a free port.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Serve it, and open nothing.")] = False,
    seed: Seed = None,
    set_: Sets = [],  # noqa: B006
    force: Force = False,
) -> None:
    """Drag a link's capacity and see the controllers react, in the browser.

    The page runs the engine itself: the same bits as `tidegate run`. It carries seven lessons. It is served on this
    machine alone until Ctrl-C, and asks for nothing else.

    Example: tidegate play tcp-joins gcc scream

    Example: tidegate play --out play.html
    """
    from tidegate._files import check_target, write_file
    from tidegate.scenario import Scenario
    from tidegate.show import play as pages

    given = names or []
    if len(given) > _MOST:
        raise InputError(f"found {len(given)} controllers: {', '.join(given)}; the page shows one or two side by side")
    if out is not None:
        if out.is_dir():
            raise InputError(f"--out {out}: is a folder; expected a file, such as {out / 'play.html'}")
        check_target(out, "page of tidegate", pages.is_page, force=force)
    made = Scenario.load(scenario, changes(set_, seed=seed))
    try:
        payload = pages.payload(made, given)
    except pages.Unplayable as error:
        if out is not None:
            raise
        # the page says it, too, and has the lessons
        say(str(error))
        payload = pages.payload(made, refused=str(error))
    text = pages.page(payload)
    if changed := pages.newer():
        say(f"warning: the page was built before {changed} changed; `make page` builds it anew")
    if out is not None:
        write_file(out, text)
        sys.stdout.write(f"written to {out}\n")
        return
    _serve(text, port, opened=not no_browser)


def _serve(text: str, port: int, *, opened: bool) -> None:
    import threading
    import webbrowser

    from tidegate.show.play import Server

    with Server(text, port) as server, stoppable("the page is no longer served"), raised():
        sys.stdout.write(f"{server.address}  Ctrl-C ends it\n")
        sys.stdout.flush()

        def open_it() -> None:
            if not webbrowser.open(server.address):
                say("found no browser to open; the address works in one on this machine")

        if opened:
            # beside the serving: some browsers, those of a terminal, are waited for
            threading.Thread(target=open_it, daemon=True).start()
        server.serve_forever()
