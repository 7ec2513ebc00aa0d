"""The command play: a page on which to drag the capacity and see the controllers react."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import interruptible
from tidegate.cli.completing import complete_controllers, scenarios
from tidegate.cli.options import Force, Seed, Sets, changes
from tidegate.cli.terminal import say, stoppable
from tidegate.errors import InputError

_DEFAULT = "home-broadband"
_MAX_CONTROLLERS = 2  # side by side on the page


def play(
    scenario: Annotated[
        str, typer.Argument(help="Scenario file, or a name from `tidegate scenario list`.", autocompletion=scenarios)
    ] = _DEFAULT,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CONTROLLER",
            help="Controllers on the page at first, such as gcc scream; by default the scenario's and another one.",
            autocompletion=complete_controllers,
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write the page to a file that works offline, instead of serving it."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; 0 for a free port.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Serve the page without opening a browser.")] = False,
    seed: Seed = None,
    set_: Sets = [],  # noqa: B006
    force: Force = False,
) -> None:
    """Drag a link's capacity and see the controllers react, in the browser.

    The page runs the engine itself, with the same results as `tidegate run`, and has eight lessons. It is served only
    to this machine, until Ctrl-C, and loads nothing from elsewhere.

    Example: tidegate play tcp-joins gcc scream

    Example: tidegate play --out play.html
    """
    from tidegate._files import check_target, write_file
    from tidegate.scenario import Scenario
    from tidegate.show import play as pages

    controllers = names or []
    if len(controllers) > _MAX_CONTROLLERS:
        raise InputError(
            f"found {len(controllers)} controllers: {', '.join(controllers)}; the page shows one or two side by side"
        )
    if out is not None:
        if out.is_dir():
            raise InputError(f"--out {out}: the path is a folder; expected a file, such as {out / 'play.html'}")
        check_target(out, "page of tidegate", pages.is_page, force=force)
    loaded = Scenario.load(scenario, changes(set_, seed=seed))
    try:
        payload = pages.payload(loaded, controllers)
    except pages.Unplayable as error:
        if out is not None:
            raise
        # the page shows the error, too, and still has the lessons
        say(str(error))
        payload = pages.payload(loaded, refused=str(error))
    text = pages.page(payload)
    if changed := pages.newer():
        say(f"warning: the page was built before {changed} changed; run `make page` to build it again")
    if out is not None:
        write_file(out, text)
        sys.stdout.write(f"written to {out}\n")
        return
    _serve(text, port, open_browser=not no_browser)


def _serve(text: str, port: int, *, open_browser: bool) -> None:
    import threading
    import webbrowser

    from tidegate.show.play import Server

    with Server(text, port) as server, stoppable("the page is no longer served"), interruptible():
        sys.stdout.write(f"{server.address}  Ctrl-C ends it\n")
        sys.stdout.flush()

        def browse() -> None:
            if not webbrowser.open(server.address):
                say("found no browser; open the address in a browser on this machine")

        if open_browser:
            # in a thread, because the call waits for browsers that run in a terminal
            threading.Thread(target=browse, daemon=True).start()
        server.serve_forever()
