"""HTML from values: the type `Markup` marks what is HTML already; everything else is escaped."""

from __future__ import annotations

import html
from typing import TypeAlias


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Content: TypeAlias = "Markup | str | int | float"

# Elements without content (HTML standard, section 13.1.2).
_VOID = frozenset({"meta", "link", "br", "hr", "input", "img"})


def text(content: Content) -> Markup:
    """Content as HTML: escaped, unless it is markup.

    >>> text("a < b & c")
    'a &lt; b &amp; c'
    """
    return content if isinstance(content, Markup) else Markup(html.escape(str(content)))


def tag(name: str, /, *contents: Content, **attributes: str | float | bool | None) -> Markup:
    """Formats one element.

    Attribute names lose a trailing underscore, and their other underscores turn into hyphens;
    ``True`` is an attribute without value, ``None`` and ``False`` leave it out.

    >>> tag("td", "5 < 6", class_="best", data_column=1)
    '<td class="best" data-column="1">5 &lt; 6</td>'
    """
    written = []
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(f" {attribute}")
        elif value is not None and value is not False:
            written.append(f' {attribute}="{html.escape(str(value))}"')
    opening = f"<{name}{''.join(written)}>"
    if name in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{''.join(text(content) for content in contents)}</{name}>")


def join(parts: list[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("".join(parts))
