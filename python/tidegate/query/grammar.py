"""The grammar of what people ask of numbers: `worst delay_p95 > 100ms and not controller == "gcc"`.

There are numbers, amounts (`10ms`, `5%`), text in quotes, names (words with dots between them; `measure["table 1/a b"]`
for any other), `+ - * /`, `< <= > >= == !=` (also chained), `in [...]`, `and`, `or`, `not`, functions, and words before
a name: whose number it is (`tcp rate`), what is sought (`lowest delay_p95`). `x > 1 and < 2` is short for `x > 1 and
x < 2`. Text becomes a tree, of which each verb takes what it can answer; nothing of it is ever run as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.errors import InputError

_LONGEST = 2000  # characters; more is nothing that anybody wrote or checks
_DEEPEST = 50  # brackets and signs inside each other
_NUMBER = r"(?>(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_RESERVED = r"(?:and|or|not|in)(?![\w.-])"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<text>"[^"]*"|'[^']*')
    |(?P<amount>{_NUMBER}(?:\s(?!{_RESERVED}))?[^\W\d]\w*|(?:{_NUMBER}|[^\W\d]\w*)\s?%)
    |(?P<number>{_NUMBER})
    |(?P<of>(?!{_RESERVED})[^\W\d][\w.-]*)(?=\s+[^\W\d])(?!\s+{_RESERVED})
    |(?P<word>not\s+in(?![\w.-])|[^\W\d]\w*(?:\.\w+)*)
    |(?P<sign><=|>=|==|!=|\*\*|[-+*/<>()\[\],])
    |(?P<end>\Z)
    |(?P<other>.)
    )""",
    re.VERBOSE,
)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_BINDS = {
    "or": ("or", 1),
    "and": ("and", 2),
    "not": ("not", 3),
    **dict.fromkeys(("in", "not in"), ("in", 4)),
    **dict.fromkeys(_MIRRORED, ("comparison", 4)),
    **dict.fromkeys("+-", ("sum", 5)),
    **dict.fromkeys(("*", "/", "**"), ("product", 6)),
}
"""What a sign or word between two parts makes of them, and how tightly it binds them."""


@dataclass(frozen=True)
class Node:
    """A part of what was written."""

    kind: str
    """`number`, `amount`, `text`, `name`, `best`, `call`, `sign`, or what its signs or words make of its parts."""
    words: tuple[str, ...]
    """The signs between its parts, or its own words; of a `name` the name, and whose number it is if that is said."""
    parts: tuple[Node, ...]
    """What it is made of."""
    text: str = field(compare=False)
    """As it was written, without brackets around it."""

    @property
    def number(self) -> float | None:
        """Its value, where it is a number without a unit."""
        if self.kind == "sign" and (size := self.parts[0].number) is not None:
            return -size if self.words == ("-",) else size
        return float(self.words[0].replace("_", "")) if self.kind == "number" else None

    @property
    def value(self) -> str:
        """What it says as text: what stands in its quotes, or as it was written."""
        return self.words[0] if self.kind == "text" else self.text

    @property
    def names(self) -> Iterator[str]:
        """The names in it, in order."""
        if self.kind == "name":
            yield self.words[0]
        for part in self.parts:
            yield from part.names

    @property
    def pairs(self) -> Iterator[tuple[Node, str, Node]]:
        """What is compared with what, a name on the left: `1 < seed < 3` is `seed > 1` and `seed < 3`."""
        if self.kind == "in":
            yield from ((self.parts[0], "==", right) for right in self.parts[1:])
        if self.kind == "comparison":
            for left, sense, right in zip(self.parts, self.words, self.parts[1:], strict=False):
                turned = right.kind in {"name", "call"} and left.kind not in {"name", "call"}
                yield (right, _MIRRORED[sense], left) if turned else (left, sense, right)


def parse(text: str, wrong: str) -> Node:
    """Reads a text.

    Args:
        text: What was written.
        wrong: What is said of it where it cannot be read: the whole message.

    Raises:
        InputError: says `wrong`, or that it is too long or too deep.

    >>> tree = parse("tcp rate > 1Mbps and < 2Mbps", "is no condition")
    >>> tree.kind, [part.text for part in tree.parts], tree.parts[1].parts[0].words
    ('and', ['tcp rate > 1Mbps', '< 2Mbps'], ('rate', 'tcp'))
    """
    if len(text) > _LONGEST:
        raise InputError(f"found {len(text)} characters; expected at most {_LONGEST}")
    reader = _Reader(text, wrong)
    tree = reader.expression()
    reader.take(kinds=["end"])
    return tree


class _Reader:
    """Reads one text from left to right."""

    def __init__(self, text: str, wrong: str) -> None:
        self.text, self.wrong = text, wrong
        self.at = self.depth = 0
        self.tokens = [*_TOKEN.finditer(text)]

    @property
    def next(self) -> str:
        """What stands here."""
        token = self.tokens[self.at]
        return " ".join(token[0].split()) if token.lastgroup == "word" else token[token.lastgroup or 0]

    def take(self, *words: str, kinds: Sequence[str | None] = ()) -> str:
        """Goes past what stands here, which has to be one of these words or of one of these kinds."""
        word = self.next
        if word not in words and self.tokens[self.at].lastgroup not in kinds:
            raise InputError(self.wrong)
        self.at += 1
        return word

    def node(self, kind: str, begin: int, words: Sequence[str] = (), parts: Sequence[Node] = ()) -> Node:
        """What was read from a token on."""
        first, last = self.tokens[begin], self.tokens[self.at - 1]
        text = self.text[first.start(first.lastgroup or 0) : last.end()]
        return Node(kind, tuple(words), tuple(parts), text)

    def expression(self, above: int = 0) -> Node:
        """Reads on as long as what stands between two parts binds them more tightly than that."""
        begin = self.at
        left = self.operand()
        while _BINDS.get(self.next, ("", 0))[1] > above:
            left = self.chain(left, begin)
        return left

    def chain(self, first: Node, begin: int) -> Node:
        """Reads all that follows a part with words of one kind between."""
        words, parts = [], [first]
        kind, rank = binds = _BINDS[self.next]
        while _BINDS.get(self.next) == binds:
            words.append(self.take(self.next))
            if kind == "in" and self.next in {"(", "["}:
                parts += self.items()
            elif self.next in _MIRRORED and parts[-1].kind == "comparison":
                parts.append(self.chain(parts[-1].parts[0], self.at))
            else:
                parts.append(self.expression(rank))
        return self.node(kind, begin, words, parts)

    def items(self) -> list[Node]:
        """Reads what stands in brackets, with commas between."""
        closing = {"(": ")", "[": "]"}[self.take("(", "[")]
        items: list[Node] = []
        while self.next != closing:
            items.append(self.expression())
            if self.next != closing:
                self.take(",")
        self.take(closing)
        return items

    def operand(self) -> Node:
        """Reads what stands before, between and behind signs."""
        begin = self.at
        self.depth += 1
        if self.depth > _DEEPEST:
            raise InputError(f"{self.wrong}; it is nested too deeply")
        if self.next == "(":
            self.take("(")
            made = self.expression()
            self.take(")")
        elif self.next in {"+", "-"}:
            made = self.node("sign", begin, [self.take("+", "-")], [self.operand()])
        elif self.next == "not":
            self.take("not")
            made = self.node("not", begin, [], [self.expression(_BINDS["not"][1])])
        else:
            made = self.leaf()
        self.depth -= 1
        return made

    def leaf(self) -> Node:
        """Reads a number, a text, a name or a call."""
        begin, kind = self.at, self.tokens[self.at].lastgroup or ""
        word = self.take(kinds=["text", "amount", "number", "of", "word"])
        if word in {"highest", "lowest"} and kind == "of" and begin == 0:
            return self.node("best", begin, [word], [self.leaf()])
        if kind == "of":
            return self.node("name", begin, [self.take(kinds=["word"]), word])
        if kind == "text":
            return self.node(kind, begin, [word[1:-1]])
        if kind != "word":
            return self.node(kind, begin, [word])
        if word in _BINDS:
            raise InputError(self.wrong)
        if word == "measure" and self.next == "[":
            self.take("[")
            name = self.take(kinds=["text"])
            self.take("]")
            return self.node("name", begin, [name[1:-1]])
        return self.node("call", begin, [word], self.items()) if self.next == "(" else self.node("name", begin, [word])
