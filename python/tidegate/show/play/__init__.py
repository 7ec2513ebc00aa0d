"""A page on which one plays with a scenario: the capacity is dragged, and the controllers react.

The page runs the engine itself; what is made here is what it needs of Python, where scenarios are read and turned into
what the engine takes. The page is built from `page/` of the repository into one file beside this one.
"""

from tidegate.show.play._lessons import Lesson, lessons
from tidegate.show.play._page import BUILT, is_built, is_page, newer, page
from tidegate.show.play._payload import payload
from tidegate.show.play._refusing import Unplayable
from tidegate.show.play._serving import Server

__all__ = ["BUILT", "Lesson", "Server", "Unplayable", "is_built", "is_page", "lessons", "newer", "page", "payload"]
