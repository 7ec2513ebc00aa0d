"""Real video: a clip is encoded, sent through a simulated network, decoded and judged.

scenario, ladder = with_clip(Scenario.load("home-broadband"), "bikes:size=352x288")
judged = judge(run(scenario, record="packets"))
judged.summary["picture_psnr_db"], judged.summary["picture_psnr_encoded_db"]
"""

from tidegate.media.feeding import with_clip, with_encoder
from tidegate.media.judge import Judged, judge
from tidegate.media.ladder import Ladder, encode
from tidegate.video.clip import Clip, Picture, Procedural, find, named
from tidegate.video.measures import distortion, grade, grades, psnr, ssim
from tidegate.video.settings import Settings

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
    "with_encoder",
]
