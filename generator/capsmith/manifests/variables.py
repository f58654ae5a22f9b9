"""Find and replace ``${VARIABLES}`` in the files that clusterctl reads.

Pure. Accepts the same substitutions as clusterctl; see :mod:`envsubst`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from capsmith.manifests.envsubst import (
    RefusedForm,
    Substitution,
    expand,
    parse_pieces,
    remove_blanks,
)

_NO_VALUES: Mapping[str, str] = MappingProxyType({})


class Trouble(StrEnum):
    """The reason why a variable probably does not work as its author expects."""

    SYNTAX = "syntax"
    """The substitution is invalid, so clusterctl refuses the whole file."""
    EMPTY = "empty"
    """The default is empty (``${A:=}``), so the variable is required after all."""


@dataclass(frozen=True, slots=True)
class Variable:
    """An occurrence of a variable ``${…}``."""

    text: str
    name: str
    default: str | None
    """Default as written, including nested variables; None if there is no default."""
    line: int
    """Line number, starting at 1."""
    commented: bool
    """Whether the variable is in a YAML comment, where clusterctl replaces it as well."""
    trouble: Trouble | None = None
    is_required: bool = False
    """Whether clusterctl requires a value, if this is the first occurrence in the file."""
    inner: tuple[str, ...] = ()
    """Names of nested variables that have no default here; clusterctl never requires them."""


def scan(text: str) -> tuple[Variable, ...]:
    """Return the variables in ``text`` in order.

    Nested variables are listed in :attr:`Variable.inner`.
    """
    # Most files of a source tree have no variables, and scanning takes longer than this test.
    if "${" not in text:
        return ()
    text = remove_blanks(text)
    result: list[Variable] = []
    line, counted = 1, 0
    comments = CommentFinder(text)
    for piece in parse_pieces(text):
        if not isinstance(piece, str):
            # Counted on from the last variable, so that long files are read once.
            line += text.count("\n", counted, piece.start)
            counted = piece.start
            result.append(_variable(text, piece, line, comments.is_commented(piece.start)))
    return tuple(result)


def find_required(variables: Iterable[Variable]) -> frozenset[str]:
    """Return the names of the variables that clusterctl requires.

    Their first occurrence has no default.
    """
    first: dict[str, bool] = {}
    for variable in variables:
        if variable.trouble is not Trouble.SYNTAX:
            # clusterctl looks at the first occurrence only, whatever the later ones say.
            first.setdefault(variable.name, variable.is_required)
    return frozenset(name for name, is_required in first.items() if is_required)


def substitute(text: str, values: Mapping[str, str] = _NO_VALUES) -> str:
    """Replace the variables in ``text`` with their values or defaults, as clusterctl does.

    A variable with neither stays as ``${NAME}``, as do substitutions that clusterctl refuses.
    """
    if "$" not in text:
        return text
    text = remove_blanks(text)
    return "".join(_replaced(text, piece, values) for piece in parse_pieces(text))


def _replaced(text: str, piece: str | Substitution | RefusedForm, values: Mapping[str, str]) -> str:
    if isinstance(piece, str):
        return piece
    if isinstance(piece, RefusedForm):
        return text[piece.start : piece.end]
    try:
        return expand(piece, values)
    except ValueError:
        return text[piece.start : piece.end]


def _variable(text: str, piece: Substitution | RefusedForm, line: int, commented: bool) -> Variable:
    own = text[piece.start : piece.end]
    if isinstance(piece, RefusedForm):
        return Variable(own, "", None, line, commented, Trouble.SYNTAX)
    default = None
    if piece.has_default:
        default = own[len("${") + len(piece.name) + len(piece.operator) : -1]
    return Variable(
        text=own,
        name=piece.name,
        default=default,
        line=line,
        commented=commented,
        trouble=Trouble.EMPTY if piece.is_default and not piece.arguments else None,
        is_required=piece.is_required,
        inner=tuple(each.name for each in piece.inner if not each.has_default),
    )


class CommentFinder:
    """Finds YAML comments in a string; positions must be passed in ascending order.

    Each character is read once, however many variables a line has.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._start = 0
        self._quote = ""
        self._is_commented = False

    def is_commented(self, position: int) -> bool:
        """Return whether ``position`` is inside a comment; a ``#`` in quotes does not count."""
        start = self._text.rfind("\n", self._position, position) + 1
        if start:
            self._position = self._start = start
            self._quote, self._is_commented = "", False
        for index in range(self._position, position):
            self._read(index)
        self._position = position
        return self._is_commented

    def _read(self, index: int) -> None:
        character = self._text[index]
        before = self._text[index - 1] if index > self._start else ""
        if self._quote:
            self._quote = "" if character == self._quote else self._quote
        elif character in "'\"" and (not before or before in " \t[{,:="):
            self._quote = character
        elif character == "#" and (not before or before in " \t"):
            self._is_commented = True
