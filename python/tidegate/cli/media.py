"""Commands about real video: media clips, media render."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate._signals import interruptible
from tidegate.cli.options import AsJson, Force, say_what_media_lacks
from tidegate.cli.terminal import print_json, stoppable

media_app = typer.Typer(
    help="Real video: list clips, and make films of the pictures that viewers saw.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@media_app.command()
def clips(as_json: AsJson = False) -> None:
    """List the clips that --media takes by name, and its settings.

    --media also takes any video file that ffmpeg can read.

    Example: tidegate media clips
    """
    from tidegate.output.terminal import console, print_rows
    from tidegate.video import cache, clip, extra, openh264, settings

    available: list[clip.Clip] = [clip.find(clip.PROCEDURAL)]
    if extra.has("av"):
        available += [clip.find(name) for name in clip.named()]
    if as_json:
        entries = [
            {"name": entry.name, "width": entry.width, "height": entry.height, "fps": float(entry.fps)}
            for entry in available
        ]
        encoders = [openh264.NAME] if openh264.is_in() else []
        about = {"settings": dict(settings.table()), "encoders_in_the_loop": encoders, "cache": str(cache.cache())}
        print_json({"clips": entries, **about})
        return
    rows = ((entry.name, f"{entry.width}x{entry.height}", f"{float(entry.fps):.5g}") for entry in available)
    print_rows(["clip", "size", "frames/s"], rows)
    to = console()
    to.print("\nOr the path of a video file. Settings, as in --media bikes:size=320x136,group=24:\n")
    print_rows(["setting", "meaning"], settings.table(), text_columns={1})
    encoder = f"codec={openh264.NAME}, an encoder in the loop, is in this build."
    absent = f"There is no encoder in the loop in this build; build with: {openh264.BUILD}"
    to.print(f"\n{encoder if openh264.is_in() else absent}", soft_wrap=True)
    to.print(f"\nEncoded clips are kept in {cache.cache()} and may be removed.", soft_wrap=True)
    say_what_media_lacks()


@media_app.command()
def render(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folder of a run with --media, or two folders for a film side by side."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The MP4 file to write.")],
    force: Force = False,
) -> None:
    """Write what the viewer saw as a film (MP4).

    The film follows the clock of the viewer's display, so a freeze is seen as a freeze.

    Example: tidegate media render DIR/runs/gcc-seed1 DIR/runs/tfrc-seed1 -o beside.mp4
    """
    from tidegate._files import check_target
    from tidegate.media.render import render as write
    from tidegate.output.terminal import console, progress
    from tidegate.runs import Run

    check_target(out, "MP4 film", _is_film, force=force)
    loaded = [Run.load(folder) for folder in runs]
    with stoppable("stopped; nothing was written"), interruptible(), progress(out.name, visible=True) as tell:
        write(loaded, out, progress=tell)
    console().print(f"written to {out}")


def _is_film(path: Path) -> bool:
    from tidegate._files import first_bytes

    return first_bytes(path, 8)[4:] == b"ftyp"
