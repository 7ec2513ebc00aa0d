"""The grammar of questions about numbers: `worst delay_p95 > 100ms and not controller == "gcc"`.

There are numbers, amounts (`10ms`, `5%`), text in quotes, names (words with dots between them; `measure["table 1/a b"]`
for any other), `+ - * /`, `< <= > >= == !=` (also chained), `in [...]`, `and`, `or`, `not`, functions, and words before
a name: the flow that a number is of (`tcp rate`), the direction of a goal (`lowest delay_p95`). `x > 1 and < 2` is
short for `x > 1 and x < 2`. The parser turns text into a tree. Each command accepts the kinds of trees that it can
evaluate; no text is ever run as Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidegate.errors import InputError

_LONGEST = 2000  # characters; longer texts are not written or checked by hand
_DEEPEST = 50  # brackets and signs inside each other
_NUMBER = r"(?>(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_RESERVED = r"(?:and|or|not|in)(?![\w.-])"
_TOKEN = re.compile(
    rf"""\s*(?:
    (?P<text>"[^"]*"|'[^']*')
    |(?P<amount>{_NUMBER}(?:\s(?!{_RESERVED}))?[^\W\d]\w*|(?:{_NUMBER}|[^\W\d]\w*)\s?%)
    |(?P<number>{_NUMBER})
    |(?P<scope>(?!{_RESERVED})[^\W\d][\w.-]*)(?=\s+[^\W\d])(?!\s+{_RESERVED})
    |(?P<word>not\s+in(?![\w.-])|[^\W\d]\w*(?:\.\w+)*)
    |(?P<sign><=|>=|==|!=|\*\*|[-+*/<>()\[\],])
    |(?P<end>\Z)
    |(?P<unknown>.)
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
"""Kind of the node that a sign or word between two parts makes, and how tightly it binds them."""


@dataclass(frozen=True)
class Node:
    """A node of the tree."""

    kind: str
    """`number`, `amount`, `text`, `name`, `best`, `call`, `sign`, or a kind of `_BINDS`."""
    words: tuple[str, ...]
    """Signs between the parts, or the node's own words; of a `name` the name, then the flow or aggregate if given."""
    parts: tuple[Node, ...]
    """Nodes below this one."""
    text: str = field(compare=False)
    """The text of the node, without brackets around it."""

    @property
    def number(self) -> float | None:
        """The value of a number without a unit; `None` for other nodes."""
        if self.kind == "sign" and (size := self.parts[0].number) is not None:
            return -size if self.words == ("-",) else size
        return float(self.words[0].replace("_", "")) if self.kind == "number" else None

    @property
    def value(self) -> str:
        """The text inside quotes; of other nodes their text as written."""
        return self.words[0] if self.kind == "text" else self.text

    @property
    def names(self) -> Iterator[str]:
        """Names in the node, in order."""
        if self.kind == "name":
            yield self.words[0]
        for part in self.parts:
            yield from part.names

    @property
    def pairs(self) -> Iterator[tuple[Node, str, Node]]:
        """Comparisons of a chain, names on the left: `1 < seed < 3` gives `seed > 1` and `seed < 3`."""
        if self.kind == "in":
            yield from ((self.parts[0], "==", second) for second in self.parts[1:])
        if self.kind == "comparison":
            for first, sense, second in zip(self.parts, self.words, self.parts[1:], strict=False):
                mirrored = second.kind in {"name", "call"} and first.kind not in {"name", "call"}
                yield (second, _MIRRORED[sense], first) if mirrored else (first, sense, second)


def parse(text: str, error_text: str) -> Node:
    """Parses a text.

    Args:
        text: The text.
        error_text: The whole message of the error if the text cannot be parsed.

    Raises:
        InputError: when the text cannot be parsed, is too long or is nested too deeply.

    >>> tree = parse("tcp rate > 1Mbps and < 2Mbps", "is no condition")
    >>> tree.kind, [part.text for part in tree.parts], tree.parts[1].parts[0].words
    ('and', ['tcp rate > 1Mbps', '< 2Mbps'], ('rate', 'tcp'))
    """
    if len(text) > _LONGEST:
        raise InputError(f"found {len(text)} characters; expected at most {_LONGEST}")
    reader = _Reader(text, error_text)
    tree = reader.expression()
    reader.take(kinds=["end"])
    return tree


class _Reader:
    """Parser of one text, from left to right."""

    def __init__(self, text: str, error_text: str) -> None:
        self.text, self.error_text = text, error_text
        self.index = self.depth = 0
        self.tokens = [*_TOKEN.finditer(text)]

    @property
    def next(self) -> str:
        """Text of the current token."""
        token = self.tokens[self.index]
        return " ".join(token[0].split()) if token.lastgroup == "word" else token[token.lastgroup or 0]

    def take(self, *words: str, kinds: Sequence[str | None] = ()) -> str:
        """Takes the current token, which has to be one of these words or of one of these kinds."""
        word = self.next
        if word not in words and self.tokens[self.index].lastgroup not in kinds:
            raise InputError(self.error_text)
        self.index += 1
        return word

    def node(self, kind: str, begin: int, words: Sequence[str] = (), parts: Sequence[Node] = ()) -> Node:
        """Makes a node of the tokens from `begin` to the current one."""
        first, last = self.tokens[begin], self.tokens[self.index - 1]
        text = self.text[first.start(first.lastgroup or 0) : last.end()]
        return Node(kind, tuple(words), tuple(parts), text)

    def expression(self, above: int = 0) -> Node:
        """Parses as long as signs and words bind more tightly than `above`."""
        begin = self.index
        tree = self.operand()
        while _BINDS.get(self.next, ("", 0))[1] > above:
            tree = self.chain(tree, begin)
        return tree

    def chain(self, first: Node, begin: int) -> Node:
        """Parses the parts that follow a first part with signs or words of one kind between them."""
        words, parts = [], [first]
        kind, rank = binds = _BINDS[self.next]
        while _BINDS.get(self.next) == binds:
            words.append(self.take(self.next))
            if kind == "in" and self.next in {"(", "["}:
                parts += self.items()
            elif self.next in _MIRRORED and parts[-1].kind == "comparison":
                parts.append(self.chain(parts[-1].parts[0], self.index))
            else:
                parts.append(self.expression(rank))
        return self.node(kind, begin, words, parts)

    def items(self) -> list[Node]:
        """Parses the expressions inside brackets, with commas between them."""
        closing = {"(": ")", "[": "]"}[self.take("(", "[")]
        items: list[Node] = []
        while self.next != closing:
            items.append(self.expression())
            if self.next != closing:
                self.take(",")
        self.take(closing)
        return items

    def operand(self) -> Node:
        """Parses an operand: an expression in brackets, one with a sign or `not` before it, or a leaf."""
        begin = self.index
        self.depth += 1
        if self.depth > _DEEPEST:
            raise InputError(f"{self.error_text}, with less nesting")
        if self.next == "(":
            self.take("(")
            operand = self.expression()
            self.take(")")
        elif self.next in {"+", "-"}:
            operand = self.node("sign", begin, [self.take("+", "-")], [self.operand()])
        elif self.next == "not":
            self.take("not")
            operand = self.node("not", begin, [], [self.expression(_BINDS["not"][1])])
        else:
            operand = self.leaf()
        self.depth -= 1
        return operand

    def leaf(self) -> Node:
        """Parses a number, a text, a name or a call."""
        begin, kind = self.index, self.tokens[self.index].lastgroup or ""
        word = self.take(kinds=["text", "amount", "number", "scope", "word"])
        if word in {"highest", "lowest"} and kind == "scope" and begin == 0:
            return self.node("best", begin, [word], [self.leaf()])
        if kind == "scope":
            return self.node("name", begin, [self.take(kinds=["word"]), word])
        if kind == "text":
            return self.node(kind, begin, [word[1:-1]])
        if kind != "word":
            return self.node(kind, begin, [word])
        if word in _BINDS:
            raise InputError(self.error_text)
        if word == "measure" and self.next == "[":
            self.take("[")
            name = self.take(kinds=["text"])
            self.take("]")
            return self.node("name", begin, [name[1:-1]])
        return self.node("call", begin, [word], self.items()) if self.next == "(" else self.node("name", begin, [word])
