"""Real video: a clip is encoded, sent through a simulated network, decoded and judged.

>>> from tidegate import Scenario, run
>>> from tidegate.media import judge, with_clip
>>> scenario, _ = with_clip(
...     Scenario.load("home-broadband", {"duration": "2s"}), "procedural:size=96x80,codec=intra,rungs=2"
... )
>>> judged = judge(run(scenario, record="packets"), vmaf_every=0)
>>> judged.summary["picture_psnr_db"] <= judged.summary["picture_psnr_encoded_db"]
True
"""

from tidegate.media.clip import Clip, Picture, Procedural, find, named
from tidegate.media.feeding import with_clip
from tidegate.media.judge import Judged, judge
from tidegate.media.ladder import Ladder, encode
from tidegate.media.measures import distortion, grade, grades, psnr, ssim
from tidegate.media.settings import Settings

__all__ = [
    "Clip",
    "Judged",
    "Ladder",
    "Picture",
    "Procedural",
    "Settings",
    "distortion",
    "encode",
    "find",
    "grade",
    "grades",
    "judge",
    "named",
    "psnr",
    "ssim",
    "with_clip",
]
