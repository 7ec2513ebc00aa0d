"""A page on which people play with a scenario: they drag the capacity, and the controllers react.

The page runs the engine in the browser. Python reads the scenarios, lowers them for the engine, and puts them into the
page, which is built from `page/` of the repository into one file beside this one.
"""

from tidegate.show.play._lessons import Lesson, lessons
from tidegate.show.play._page import BUILT, is_built, is_page, newer, page
from tidegate.show.play._payload import payload
from tidegate.show.play._refusing import Unplayable
from tidegate.show.play._serving import Server

__all__ = ["BUILT", "Lesson", "Server", "Unplayable", "is_built", "is_page", "lessons", "newer", "page", "payload"]
