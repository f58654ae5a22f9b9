"""Read the objects that expressions of mutating admission policies create.

The CEL library knows neither ``Object`` nor ``JSONPatch``, so the expression is rewritten without
them before it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from capsmith.cel_text import PATCH_VALUE

OBJECT, PATCH = "Object", "JSONPatch"
_TEXTS = frozenset({"op", "path", "from"})
"""Fields of a JSONPatch that are texts."""
_FIELDS = _TEXTS | {"value"}
_ESCAPE = "jsonpatch.escapeKey"
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<text>[rRbB]{0,2}(?:\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))
    |(?P<name>[A-Za-z_]\w*(?:\s*\.\s*[A-Za-z_]\w*)*)
    |(?P<other>`[^`]*`|\d[\w.]*|[=!<>]=|&&|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 100


class CreatedObject(NamedTuple):
    """An object that an expression creates by the name of its type."""

    name: str
    """Name of its type, such as ``Object.spec``."""
    expected: str
    """Name that belongs to its field; empty if it is the value of no field."""


class PatchExpression(NamedTuple):
    """What an expression of a patch creates."""

    is_read: bool
    """Whether the text could be read to its end."""
    rewritten: str
    """The expression with values of any type in place of the objects."""
    typed: str
    """The same, in which fields that are texts are compared with one."""
    objects: tuple[CreatedObject, ...]
    unknown: tuple[str, ...]
    """Fields that no JSONPatch has."""
    result: str
    """Type of the result if it is obvious, such as ``Object.spec`` or ``list``; else empty."""


def read_patch(text: str) -> PatchExpression:
    """Return what an expression creates."""
    reader = _Reader(text)
    rewritten, typed = reader.read("", 0)
    return PatchExpression(
        reader.is_complete,
        rewritten,
        typed,
        tuple(reader.objects),
        tuple(reader.unknown),
        reader.find_result(),
    )


class _Reader:
    def __init__(self, text: str) -> None:
        found = (each for each in _TOKEN.finditer(text) if not each["space"])
        self._tokens = [re.sub(r"\s+", "", each[0]) if each["name"] else each[0] for each in found]
        self._kinds = [each.lastgroup for each in _TOKEN.finditer(text) if not each["space"]]
        self._next = 0
        self._is_broken = False
        self.objects: list[CreatedObject] = []
        self.unknown: list[str] = []

    @property
    def is_complete(self) -> bool:
        """Return whether all tokens were read."""
        return self._next == len(self._tokens) and not self._is_broken

    def read(self, expected: str, depth: int, stops: str = "") -> tuple[str, str]:
        """Return the expression up to one of ``stops`` without objects, plain and typed."""
        parts: list[tuple[str, str]] = []
        while self._next < len(self._tokens):
            token = self._tokens[self._next]
            if token in stops and stops:
                break
            if depth > _DEEPEST:
                self._is_broken = True
                break
            self._next += 1
            if self._is_object(token):
                parts.append(self._read_object(token, expected, depth))
            elif token in _CLOSING:
                plain, typed = self.read(expected, depth + 1, _CLOSING[token])
                end = self._take()
                parts.append((token + plain + end, token + typed + end))
            else:
                name = "string" if token == _ESCAPE else token
                parts.append((name, name))
        return " ".join(plain for plain, _ in parts), " ".join(typed for _, typed in parts)

    def _is_object(self, token: str) -> bool:
        is_name = token in (OBJECT, PATCH) or token.startswith(f"{OBJECT}.")
        return is_name and self._next < len(self._tokens) and self._tokens[self._next] == "{"

    def _take(self) -> str:
        if self._next == len(self._tokens):
            self._is_broken = True
            return ""
        self._next += 1
        return self._tokens[self._next - 1]

    def _read_object(self, name: str, expected: str, depth: int) -> tuple[str, str]:
        if name != PATCH:
            self.objects.append(CreatedObject(name, expected))
        self._take()
        plains: list[str] = []
        typeds: list[str] = []
        for field in self._list_fields():
            is_patch = name == PATCH
            if is_patch and field not in _FIELDS:
                self.unknown.append(field)
            below = "" if is_patch else f"{expected or name}.{field}"
            plain, typed = self.read(below, depth + 1, ",}")
            is_text = is_patch and field in _TEXTS
            plains.append(f"dyn({plain})")
            typeds.append(f"dyn(({typed}) + '')" if is_text else f"dyn({typed})")
        plain, typed = (", ".join(each) for each in (plains, typeds))
        if name != PATCH:
            return f"dyn([{plain}])", f"dyn([{typed}])"
        # The item of the list has the type of a patch, and the list keeps its fields to be checked.
        item = f".map(capsmithItem, {PATCH_VALUE})[0]"
        return f"[dyn([{plain}])]{item}", f"[dyn([{typed}])]{item}"

    def _list_fields(self) -> Iterator[str]:
        """Yield the name of each field of an object, whose value is read in between."""
        while not self._is_broken:
            token = self._take()
            if token == "}":
                return
            if token == ",":
                continue
            field = self._take() if token == "?" else token
            if self._take() != ":":
                self._is_broken = True
                return
            yield field.strip("`")

    def find_result(self) -> str:
        """Return the obvious type of the whole expression; empty if it is not obvious."""
        first = self._tokens[0] if self._tokens else ""
        is_object = first in (OBJECT, PATCH) or first.startswith(f"{OBJECT}.")
        opening = 1 if is_object else 0
        if not self.is_complete or self._find_end(opening) != len(self._tokens) - 1:
            return ""
        return first if is_object else {"[": "list", "{": "map"}.get(first, "")

    def _find_end(self, opening: int) -> int:
        """Return where the bracket at ``opening`` is closed; -1 if there is no bracket."""
        depth = 0
        for number, token in enumerate(self._tokens[opening:], opening):
            depth += (token in _CLOSING) - (token in _CLOSING.values())
            if not depth:
                return number if token in _CLOSING.values() else -1
        return -1
