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
from tidegate.scenario.radio import Arrival, Handover, Lte, RadioQueue, Users
from tidegate.scenario.scenario import Scenario

__all__ = [
    "Arrival",
    "Audio",
    "Back",
    "Controller",
    "Feedback",
    "Flow",
    "Handover",
    "Link",
    "Lte",
    "Media",
    "Queue",
    "RadioQueue",
    "Scenario",
    "Tcp",
    "Udp",
    "Users",
]
