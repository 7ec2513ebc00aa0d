"""Scenario files: their tables, the checks on them, and their translation into the engine's input."""

from tidegate.scenario.couplings import Coupling
from tidegate.scenario.flows import Flow
from tidegate.scenario.links import Back, Link, Queue
from tidegate.scenario.media import Controller, Feedback, Media
from tidegate.scenario.moves import Move
from tidegate.scenario.radio import Arrival, Handover, Lte, RadioQueue, Users
from tidegate.scenario.scenario import Scenario
from tidegate.scenario.sessions import Avpf, Member, Session
from tidegate.scenario.sources import Audio
from tidegate.scenario.traffic import Tcp, Udp

__all__ = [
    "Arrival",
    "Audio",
    "Avpf",
    "Back",
    "Controller",
    "Coupling",
    "Feedback",
    "Flow",
    "Handover",
    "Link",
    "Lte",
    "Media",
    "Member",
    "Move",
    "Queue",
    "RadioQueue",
    "Scenario",
    "Session",
    "Tcp",
    "Udp",
    "Users",
]
