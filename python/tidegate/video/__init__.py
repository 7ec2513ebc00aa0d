"""Video by itself: clips, codecs, and the similarity of pictures. Independent of scenarios and runs."""

from tidegate.video.clip import Clip, Picture, Procedural, find, named
from tidegate.video.measures import distortion, grade, grades, psnr, ssim
from tidegate.video.settings import Settings

__all__ = [
    "Clip",
    "Picture",
    "Procedural",
    "Settings",
    "distortion",
    "find",
    "grade",
    "grades",
    "named",
    "psnr",
    "ssim",
]
