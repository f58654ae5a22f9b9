"""Compare regular expressions: does one accept every text that another one accepts?

Only for the syntax of most patterns in CRDs, which has one meaning in RE2 and elsewhere: literals,
classes, groups, alternatives, repetition, and anchors at both ends.  Libraries that compare
languages, such as greenery, set no limit to the time that hostile patterns take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

_HIGHEST = 0x10FFFF
_MOST_STATES = 2_000
"""Maximum number of states of an expression, and of pairs of states to look at."""
_LONGEST = 2_000
"""Maximum length of an expression, in characters."""
_MOST_REPEATS = 256
_MOST_VISITS = 300_000
"""Maximum number of moves of an automaton that are looked at."""
_QUANTIFIER = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}")
_META = frozenset("\\.+*?()|[]{}^$")
_SHORTHANDS = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}

Ranges = tuple[tuple[int, int], ...]
_ANY: Ranges = ((0, _HIGHEST),)
_NO_LINE_END: Ranges = ((0, 9), (11, _HIGHEST))


class _Unsupported(Exception):
    """Raised for a pattern that is not compared."""


def is_included(pattern: str, other: str) -> bool:
    """Return whether ``other`` certainly accepts every text that ``pattern`` accepts.

    False if that is not so, or if it cannot be decided quickly.
    """
    if max(len(pattern), len(other)) > _LONGEST:
        return False
    try:
        one, two = _Parser(pattern).parse(), _Parser(other).parse()
        return _is_subset(one, two)
    except _Unsupported:
        return False


class _Part(NamedTuple):
    """A part of an automaton, from its first to its last state."""

    first: int
    last: int


_NOTHING = _Part(0, 0)


@dataclass(slots=True)
class _Automaton:
    """A nondeterministic automaton with empty moves; the state 0 is the first."""

    empty: list[list[int]] = field(default_factory=list)
    moves: list[list[tuple[Ranges, int]]] = field(default_factory=list)
    whole: _Part = field(default=_NOTHING)
    visits: int = 0

    def add_state(self) -> int:
        if len(self.empty) >= _MOST_STATES:
            raise _Unsupported
        self.empty.append([])
        self.moves.append([])
        return len(self.empty) - 1

    def add_move(self, ranges: Ranges) -> _Part:
        part = _Part(self.add_state(), self.add_state())
        self.moves[part.first].append((ranges, part.last))
        return part

    def join(self, parts: Iterable[_Part]) -> _Part:
        """Return the sequence of parts."""
        first = last = self.add_state()
        for part in parts:
            self.empty[last].append(part.first)
            last = part.last
        return _Part(first, last)

    def choose(self, parts: Iterable[_Part]) -> _Part:
        """Return the alternative of parts."""
        whole = _Part(self.add_state(), self.add_state())
        for part in parts:
            self.empty[whole.first].append(part.first)
            self.empty[part.last].append(whole.last)
        return whole

    def repeat(self, part: _Part) -> _Part:
        """Return any number of repetitions of a part."""
        whole = self.choose([part])
        self.empty[whole.first].append(whole.last)
        self.empty[part.last].append(part.first)
        return whole

    def close(self, states: Iterable[int]) -> frozenset[int]:
        """Return states and what is reached from them by empty moves."""
        found, waiting = set(states), list(states)
        while waiting:
            self._count(1)
            for state in self.empty[waiting.pop()]:
                if state not in found:
                    found.add(state)
                    waiting.append(state)
        return frozenset(found)

    def _count(self, visits: int) -> None:
        self.visits += visits
        if self.visits > _MOST_VISITS:
            raise _Unsupported

    def step(self, states: frozenset[int], character: int) -> frozenset[int]:
        self._count(len(states))
        return self.close(
            [
                target
                for state in states
                for ranges, target in self.moves[state]
                if any(low <= character <= high for low, high in ranges)
            ]
        )


def _is_subset(one: _Automaton, two: _Automaton) -> bool:
    starts = {
        edge
        for automaton in (one, two)
        for moves in automaton.moves
        for ranges, _ in moves
        for low, high in ranges
        for edge in (low, high + 1)
    }
    # Between two edges, all characters are alike.
    characters = sorted(edge for edge in starts | {0} if edge <= _HIGHEST)
    begin = one.close([one.whole.first]), two.close([two.whole.first])
    seen, waiting = {begin}, [begin]
    while waiting:
        left, right = waiting.pop()
        if one.whole.last in left and two.whole.last not in right:
            return False
        for character in characters:
            after = one.step(left, character), two.step(right, character)
            if after[0] and after not in seen:
                if len(seen) >= _MOST_STATES:
                    raise _Unsupported
                seen.add(after)
                waiting.append(after)
    return True


class _Parser:
    """A recursive descent parser that builds an automaton."""

    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._place = 0
        self._depth = 0
        self._automaton = _Automaton()

    def parse(self) -> _Automaton:
        """Return the automaton of the texts in which the pattern is found."""
        begins, ends = self._text.startswith("^"), self._ends_with_anchor()
        # An alternative has a lower precedence than an anchor.
        if (begins or ends) and "|" in self._top_level():
            raise _Unsupported
        self._place = int(begins)
        if ends:
            self._text = self._text[:-1]
        found = self._alternatives()
        if self._place != len(self._text):
            raise _Unsupported
        anything = self._automaton.repeat
        parts = [] if begins else [anything(self._automaton.add_move(_ANY))]
        parts.append(found)
        if not ends:
            parts.append(anything(self._automaton.add_move(_ANY)))
        self._automaton.whole = self._automaton.join(parts)
        return self._automaton

    def _ends_with_anchor(self) -> bool:
        before = len(self._text) - len(self._text.rstrip("$"))
        slashes = self._text[: len(self._text) - before]
        is_escaped = (len(slashes) - len(slashes.rstrip("\\"))) % 2 == 1
        return before == 1 and not is_escaped

    def _top_level(self) -> str:
        """Return the pattern without its groups, escapes and classes."""
        text = re.sub(r"\\.", "", self._text, flags=re.DOTALL)
        text = re.sub(r"\[\^?\]?[^\]]*\]", "", text)
        while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
            text = shorter
        return text

    @property
    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _alternatives(self) -> _Part:
        self._depth += 1
        if self._depth > 50:
            raise _Unsupported
        parts = [self._sequence()]
        while self._next == "|":
            self._place += 1
            parts.append(self._sequence())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else self._automaton.choose(parts)

    def _sequence(self) -> _Part:
        parts = []
        while self._next not in ("", "|", ")"):
            parts.append(self._repeated())
        return self._automaton.join(parts)

    def _repeated(self) -> _Part:
        start = self._place
        part = self._atom()
        end = self._place
        least, most = self._quantifier()
        if self._next in ("?", "+", "*") and self._place > end:
            raise _Unsupported  # a lazy one, or one of a quantifier
        if (least, most) == (1, 1):
            return part
        copies = [part]
        for _ in range((most or least + 1) - 1):
            self._place = start
            copies.append(self._atom())
        self._place = end
        self._quantifier()
        build = self._automaton
        needed = copies[:least]
        if most is None:
            return build.join([*needed, build.repeat(copies[-1])])
        return build.join(
            [*needed, *(build.choose([each, build.join([])]) for each in copies[least:])]
        )

    def _quantifier(self) -> tuple[int, int | None]:
        """Return the least and the most repetitions; None is no limit."""
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        if self._next in simple and self._next:
            self._place += 1
            return simple[self._text[self._place - 1]]
        if self._next != "{":
            return 1, 1
        found = _QUANTIFIER.match(self._text, self._place)
        if found is None:
            raise _Unsupported
        self._place = found.end()
        least = int(found[1])
        most = least if found[2] is None else int(found[3]) if found[3] else None
        if max(least, most or 0) > _MOST_REPEATS or most == 0 or (most or least) < least:
            raise _Unsupported
        return least, most

    def _atom(self) -> _Part:
        character = self._next
        self._place += 1
        if character == "(":
            if self._next == "?":
                if not self._text.startswith("?:", self._place):
                    raise _Unsupported
                self._place += 2
            part = self._alternatives()
            if self._next != ")":
                raise _Unsupported
            self._place += 1
            return part
        if character == "[":
            return self._automaton.add_move(tuple(self._class()))
        if character == ".":
            return self._automaton.add_move(_NO_LINE_END)
        if character == "\\":
            return self._automaton.add_move(self._escape())
        if character in _META:
            raise _Unsupported
        return self._automaton.add_move(((ord(character), ord(character)),))

    def _escape(self) -> Ranges:
        character = self._next
        self._place += 1
        if character in _SHORTHANDS:
            return _SHORTHANDS[character]
        if not character or character.isalnum() or not character.isascii():
            raise _Unsupported
        return ((ord(character), ord(character)),)

    def _class(self) -> Iterator[tuple[int, int]]:
        is_negated = self._next == "^"
        self._place += is_negated
        found: list[tuple[int, int]] = []
        while self._next != "]" or not found:
            low = self._class_item()
            is_range = self._next == "-" and self._text[self._place + 1 : self._place + 2] != "]"
            if not is_range:
                found += low
                continue
            self._place += 1
            high = self._class_item()
            if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] < low[0][0]:
                raise _Unsupported
            found.append((low[0][0], high[0][1]))
        self._place += 1
        return iter(_negate(found) if is_negated else found)

    def _class_item(self) -> Ranges:
        character = self._next
        if not character or self._text.startswith(("[:", "]"), self._place):
            raise _Unsupported
        self._place += 1
        return self._escape() if character == "\\" else ((ord(character), ord(character)),)


def _negate(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    begin = 0
    for low, high in sorted(ranges):
        if low > begin:
            yield begin, low - 1
        begin = max(begin, high + 1)
    if begin <= _HIGHEST:
        yield begin, _HIGHEST
