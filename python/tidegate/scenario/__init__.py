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
from tidegate.scenario.sessions import Avpf, Member, Session

__all__ = [
    "Audio",
    "Avpf",
    "Back",
    "Controller",
    "Feedback",
    "Flow",
    "Link",
    "Media",
    "Member",
    "Queue",
    "Scenario",
    "Session",
    "Tcp",
    "Udp",
]
