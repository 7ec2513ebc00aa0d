"""Commands about real video: media clips, media render."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import raised
from tidegate.cli.options import AsJson, Force
from tidegate.cli.terminal import print_json, say, stoppable

media_app = typer.Typer(
    help="Real video: which clips there are, and films of what viewers saw.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def add_to(app: typer.Typer) -> None:
    """Puts the commands on the command line."""
    app.add_typer(media_app, name="media")


@media_app.command()
def clips(as_json: AsJson = False) -> None:
    """List the clips that --media takes by name, and its settings.

    Any video file that ffmpeg can read does, too.

    Example: tidegate media clips
    """
    from tidegate.output.terminal import console, plain_table, print_table
    from tidegate.video import cache, clip, extra, openh264, settings

    found: list[clip.Clip] = [clip.find(clip.PROCEDURAL)]
    if extra.has("av"):
        found += [clip.find(name) for name in clip.named()]
    if as_json:
        print_json(
            {
                "clips": [
                    {"name": one.name, "width": one.width, "height": one.height, "fps": float(one.fps)} for one in found
                ],
                "settings": dict(settings.table()),
                "encoders_in_the_loop": [openh264.NAME] if openh264.is_in() else [],
                "cache": str(cache.cache()),
            }
        )
        return
    table = plain_table("clip", "size", "frames/s")
    for one in found:
        table.add_row(one.name, f"{one.width}x{one.height}", f"{float(one.fps):.5g}")
    print_table(table)
    to = console()
    to.print("\nOr the path of a video file. Settings, as in --media bikes:size=320x136,group=24:\n")
    lines = plain_table("setting", "what it is")
    lines.columns[1].justify = "left"
    for name, doc in settings.table():
        lines.add_row(name, doc)
    print_table(lines)
    absent = f"There is no encoder in the loop in this build; build with: {openh264.BUILD}"
    to.print(
        f"\ncodec={openh264.NAME}, an encoder in the loop, is in this build." if openh264.is_in() else f"\n{absent}",
        soft_wrap=True,
    )
    to.print(f"\nEncoded clips are kept in {cache.cache()} and may be removed.", soft_wrap=True)
    if missing := extra.missing():
        say(f"{missing}; {extra.INSTALL} brings H.264, real clips and VMAF")


@media_app.command()
def render(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="A run that was written with --media, or two to be shown side by side."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The MP4 file to write.")],
    force: Force = False,
) -> None:
    """Write what the viewer saw as a film (MP4).

    The pictures stand on the clock of the viewer's display: a freeze is seen as one.

    Example: tidegate media render DIR/runs/gcc-seed1 DIR/runs/tfrc-seed1 -o beside.mp4
    """
    from tidegate._files import check_target
    from tidegate.media.render import render as write
    from tidegate.output.terminal import console, progress
    from tidegate.runs import Run

    check_target(out, "MP4 film", _is_film, force=force)
    loaded = [Run.load(folder) for folder in runs]
    with stoppable("stopped; nothing was written"), raised(), progress(out.name, shown=True) as tell:
        write(loaded, out, progress=tell)
    console().print(f"written to {out}")


def _is_film(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(8)[4:] == b"ftyp"
