"""Replace ``${VARIABLES}`` as clusterctl does, with sample values, and keep positions."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

from capsmith.manifests.envsubst import Refused, Substitution, pieces, without_blanks
from capsmith.manifests.expansion import expand
from capsmith.manifests.variable_values import SAMPLE

_KNOWN = {
    "CLUSTER_NAME": "sample",
    "NAMESPACE": "default",
    "KUBERNETES_VERSION": "v1.34.0",  # any version does: what is judged is the form
    "CONTROL_PLANE_MACHINE_COUNT": "1",
    "WORKER_MACHINE_COUNT": "1",
}


@dataclass(slots=True)
class Substituted:
    """A text without variables, and the way back to the original positions."""

    text: str
    original: str
    refused: int = 0
    """Offset in ``original``, plus 1, of the first form that clusterctl refuses; 0: none."""
    _starts: list[int] = field(default_factory=list)
    """Offsets in ``text`` of the values of variables, rising."""
    _values: list[tuple[int, int, int]] = field(default_factory=list)
    """For each: its end in ``text``, and start and end of the variable in the original."""
    _lines: list[int] = field(default_factory=list)
    _original_lines: list[int] = field(default_factory=list)

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Return line and column (from 1) in the original of a position in ``text``."""
        if not self._starts:
            return line, column
        if not self._lines:
            self._lines, self._original_lines = _line_starts(self.text), _line_starts(self.original)
        offset = self._lines[min(line, len(self._lines)) - 1] + column - 1
        number = bisect.bisect_right(self._starts, offset) - 1
        if number >= 0:
            end, start_before, end_before = self._values[number]
            # Inside a value: the variable itself; behind it: as far behind the variable.
            offset = start_before if offset < end else offset - end + end_before
        found = bisect.bisect_right(self._original_lines, offset)
        return found, offset - self._original_lines[found - 1] + 1


def substitute(text: str, alone: str = SAMPLE) -> Substituted:
    """Return ``text`` with sample values.

    A variable without a default becomes :data:`SAMPLE`, or ``alone`` if its line holds nothing
    else: such a one is often a whole block.  What clusterctl refuses stays.
    """
    if "$" not in text:
        return Substituted(text, text)
    plain = without_blanks(text)
    result = Substituted("", plain)
    parts: list[str] = []
    length = position = 0
    for piece in pieces(plain):
        if isinstance(piece, str):
            start, value = position, piece
            # A dollar may be written as two; literal text is as long as it was.
            position += 2 if piece == "$" and plain.startswith("$$", position) else len(piece)
        elif isinstance(piece, Refused):
            start, value, position = piece.start, SAMPLE, piece.end
            result.refused = result.refused or start + 1
        else:
            start, value, position = piece.start, _value(piece), piece.end
            if value == SAMPLE and _is_alone(plain, start, position):
                value = alone
        if len(value) != position - start or not isinstance(piece, str):
            result._starts.append(length)
            result._values.append((length + len(value), start, position))
        parts.append(value)
        length += len(value)
    result.text = "".join(parts)
    return result


def _value(piece: Substitution) -> str:
    names = [each.name for each in (piece, *piece.inner) if not each.has_default]
    values = {name: _KNOWN.get(name, SAMPLE) for name in names}
    if values.get(piece.name) == SAMPLE:
        return "1" if piece.operator == "#" and not piece.arguments else SAMPLE
    try:
        return expand(piece, values)
    except ValueError:
        return SAMPLE


def _is_alone(text: str, start: int, end: int) -> bool:
    before = text[text.rfind("\n", 0, start) + 1 : start]
    line_end = text.find("\n", end)
    return not before.strip() and not text[end : line_end if line_end >= 0 else None].strip()


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]
