"""The tokens of a template."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from enum import StrEnum
from typing import NamedTuple

from capsmith.yamldoc.quote import shown


class TemplateError(ValueError):
    """The template does not parse; ``position`` is an offset in its text."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Kind(StrEnum):
    """The kind of a token."""

    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    SPACE = "space"
    ASSIGN = "assign"
    DECLARE = "declare"
    PIPE = "pipe"
    STRING = "string"
    CHARACTER = "character"
    NUMBER = "number"
    VARIABLE = "variable"
    FIELD = "field"
    DOT = "dot"
    WORD = "word"
    """An identifier or a keyword."""
    LEFT = "left"
    RIGHT = "right"
    OTHER = "other"
    END = "end"


class Token(NamedTuple):
    """A token and its offset in the template."""

    kind: Kind
    text: str
    position: int


_SPACE = r"[ \t\r\n]"
_OPEN = re.compile(rf"\{{\{{(?:-(?={_SPACE}))?")
_COMMENT = re.compile(rf"\{{\{{(?:-{_SPACE})?/\*")
_COMMENT_END = re.compile(rf"(?:{_SPACE}-)?\}}\}}")
_CLOSE = re.compile(rf"(?:{_SPACE}-)?\}}\}}")
_TERMINATED = re.compile(rf"{_SPACE}|[.,|:()]|\}}\}}|$(?!\n)")
_NUMBER_START = re.compile(r"[+-]|\.?[0-9]")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    r"|[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"
    r"|\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9]+)?|0(?:_?[0-7])*(?![0-9])|[1-9](?:_?[0-9])*)"
    r"(?:[+-][0-9.]+i)?i?"
)
_PATTERNS = (
    (Kind.SPACE, re.compile(rf"{_SPACE}+?(?={_SPACE}-\}}\}})|{_SPACE}+")),
    (Kind.ASSIGN, re.compile("=")),
    (Kind.DECLARE, re.compile(":=")),
    (Kind.PIPE, re.compile(r"\|")),
    (Kind.STRING, re.compile(r'"(?:\\[^\n]|[^"\\\n])*"|`[^`]*`')),
    (Kind.CHARACTER, re.compile(r"'(?:\\[^\n]|[^'\\\n])*'")),
    (Kind.VARIABLE, re.compile(r"\$\w*")),
    (Kind.FIELD, re.compile(r"\.\w+")),
    (Kind.DOT, re.compile(r"\.")),
    (Kind.WORD, re.compile(r"\w+")),
    (Kind.LEFT, re.compile(r"\(")),
    (Kind.RIGHT, re.compile(r"\)")),
    (Kind.OTHER, re.compile(r"[!-/;-@\[-`{-~]")),
)
_NAMES = frozenset({Kind.VARIABLE, Kind.FIELD, Kind.DOT, Kind.WORD})
_UNFINISHED = {'"': "a quoted string", "`": "a quoted string", "'": "a character", ":": "`:=`"}


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a template; the last one is of kind END.

    Raises TemplateError for what is no token.
    """
    position = 0
    while position < len(text):
        start = text.find("{{", position)
        if start != position:
            stop = len(text) if start < 0 else start
            yield Token(Kind.TEXT, text[position:stop], position)
            position = stop
        elif comment := _COMMENT.match(text, position):
            position = _after_comment(text, comment.end())
        else:
            opening = _OPEN.match(text, position)
            assert opening is not None
            yield Token(Kind.OPEN, opening[0], position)
            position = yield from _action(text, opening.end())
    yield Token(Kind.END, "", len(text))


def _after_comment(text: str, position: int) -> int:
    end = text.find("*/", position)
    if end < 0:
        raise TemplateError("a comment is not closed", position)
    closing = _COMMENT_END.match(text, end + 2)
    if closing is None:
        raise TemplateError("a comment ends before `}}`", end)
    return closing.end()


def _action(text: str, position: int) -> Generator[Token, None, int]:
    """Yield the tokens up to and with the closing braces, and return the offset behind them."""
    depth = 0
    while True:
        closing = _CLOSE.match(text, position)
        if closing is not None:
            if depth:
                raise TemplateError("`)` is missing before `}}`", position)
            yield Token(Kind.CLOSE, closing[0], position)
            return closing.end()
        if position == len(text):
            raise TemplateError("`}}` is missing", position)
        token = _token(text, position)
        depth += {Kind.LEFT: 1, Kind.RIGHT: -1}.get(token.kind, 0)
        if depth < 0:
            raise TemplateError("`)` has no `(`", position)
        yield token
        position += len(token.text)


def _token(text: str, position: int) -> Token:
    if _NUMBER_START.match(text, position):
        found = _NUMBER.match(text, position)
        if found is None or re.match(r"[\w+-]", text[found.end() : found.end() + 1]):
            raise TemplateError("a number is malformed", position)
        return Token(Kind.NUMBER, found[0], position)
    for kind, pattern in _PATTERNS:
        found = pattern.match(text, position)
        if found is None:
            continue
        if kind in _NAMES and not _TERMINATED.match(text, found.end()):
            character = text[found.end()]
            raise TemplateError(f"{shown(character)} cannot follow {shown(found[0])}", found.end())
        return Token(kind, found[0], position)
    character = text[position]
    if character in _UNFINISHED:
        raise TemplateError(f"{_UNFINISHED[character]} is not closed", position)
    raise TemplateError(f"{shown(character)} is not allowed in a template", position)
