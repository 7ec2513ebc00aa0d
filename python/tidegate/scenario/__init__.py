"""Scenario files: what a person writes, checked and turned into what the engine takes."""

from tidegate.scenario.flows import (
    Audio,
    Controller,
    Feedback,
    Flow,
    Media,
    Tcp,
    Udp,
)
from tidegate.scenario.links import Back, Link, Queue
from tidegate.scenario.scenario import Scenario

__all__ = [
    "Audio",
    "Back",
    "Controller",
    "Feedback",
    "Flow",
    "Link",
    "Media",
    "Queue",
    "Scenario",
    "Tcp",
    "Udp",
]
