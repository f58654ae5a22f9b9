"""Generate a short string that matches a regular expression, for examples.

Supports the subset of RE2 that Kubernetes schemas commonly use: literals, classes, groups,
alternatives, repetition and anchors.  Any other pattern raises :class:`NoSample`.
"""

from __future__ import annotations

import re

from capsmith.provider_yaml.patterns import explain_refusal, has_match

_CLASSES = {
    "d": "1234567890",
    "w": "abcdefghijklmnopqrstuvwxyz0123456789_",
    "s": " ",
    "D": "abc",
    "W": "-.",
    "S": "abc",
}
_PRINTABLE = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-._/:@ "
_QUANTIFIER = re.compile(r"\{(\d+)(,(\d*))?\}")
_FLAGS = re.compile(r"\?[ims]+\)")
_LONGEST = 512


class NoSample(Exception):
    """Raised if a pattern is not supported, or if no string within the limits matches it."""


def sample(pattern: str, minimum: int = 0, maximum: int = _LONGEST) -> str:
    """Return a string of ``minimum`` to ``maximum`` characters that matches ``pattern``.

    Raises NoSample if no such string is found.
    """
    # Unbounded repetitions grow together until the string is long enough.  The shortest sample is
    # the most readable, and for most patterns the first attempt is sufficient.
    for extra in range(min(max(minimum, 8), _LONGEST) + 1):
        text = _Sampler(pattern, extra).text()
        if len(text) > maximum:
            break
        # Checked again, because anchors and alternatives in the middle are only handled
        # approximately.
        if len(text) >= minimum and _found(pattern, text):
            return text
    raise NoSample(pattern)


def _found(pattern: str, text: str) -> bool:
    return not explain_refusal(pattern) and has_match(pattern, text)


class _Sampler:
    """A recursive descent parser that samples as it parses.

    ``extra`` is the minimum number of repetitions where the number is unbounded.
    """

    def __init__(self, pattern: str, extra: int) -> None:
        self._pattern = pattern
        self._at = 0
        self._extra = extra

    def text(self) -> str:
        """Return a sample for the whole expression."""
        result = self._alternatives()
        if self._at != len(self._pattern):
            raise NoSample(self._pattern)
        return result

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        if self._at >= len(self._pattern):
            raise NoSample(self._pattern)
        self._at += 1
        return self._pattern[self._at - 1]

    def _alternatives(self) -> str:
        # The first alternative is used; the others are only read to find the end of the group.
        first = self._sequence()
        while self._peek() == "|":
            self._take()
            self._sequence()
        return first

    def _sequence(self) -> str:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return "".join(parts)

    def _atom(self) -> str:
        character = self._take()
        match character:
            case "^" | "$":
                return ""
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()[0]
            case ".":
                return "a"
            case "*" | "+" | "?":
                raise NoSample(self._pattern)
        return character

    def _group(self) -> str:
        flags = _FLAGS.match(self._pattern, self._at)
        if flags is not None:
            # Flags are ignored here, but like any other sample, the result is checked at the end.
            self._at = flags.end()
            return ""
        if self._pattern.startswith("?:", self._at):
            self._at += 2
        elif self._peek() == "?":
            raise NoSample(self._pattern)
        result = self._alternatives()
        if self._take() != ")":
            raise NoSample(self._pattern)
        return result

    def _escape(self) -> str:
        character = self._take()
        if character in _CLASSES:
            return _CLASSES[character]
        if character.isalnum():
            raise NoSample(self._pattern)
        return character

    def _class(self) -> str:
        negated = self._peek() == "^"
        if negated:
            self._take()
        members = ""
        first = True
        while self._peek() != "]" or first:
            first = False
            members += self._members()
        self._take()
        if not negated:
            return members[0]
        allowed = [character for character in _PRINTABLE if character not in members]
        if not allowed:
            raise NoSample(self._pattern)
        return allowed[0]

    def _members(self) -> str:
        character = self._take()
        if character == "[" and self._peek() == ":":
            raise NoSample(self._pattern)
        low = self._escape() if character == "\\" else character
        follower = self._pattern[self._at + 1 : self._at + 2]
        if self._peek() != "-" or follower in ("]", ""):
            return low
        self._take()
        character = self._take()
        high = self._escape() if character == "\\" else character
        if len(low) != 1 or len(high) != 1 or low > high:
            raise NoSample(self._pattern)
        return "".join(chr(code) for code in range(ord(low), ord(high) + 1))

    def _repeated(self, atom: str) -> str:
        least, most = self._quantifier()
        count = least if most == least else max(least, min(self._extra, most))
        if self._peek() == "?" and (least, most) != (1, 1):
            self._take()
        return atom * count

    def _quantifier(self) -> tuple[int, int]:
        match self._peek():
            case "*":
                self._take()
                return 0, _LONGEST
            case "+":
                self._take()
                return 1, _LONGEST
            case "?":
                self._take()
                return 0, 1
        counted = _QUANTIFIER.match(self._pattern, self._at)
        if counted is None:
            return 1, 1
        self._at = counted.end()
        least = int(counted[1])
        most = least if counted[2] is None else int(counted[3] or _LONGEST)
        if least > _LONGEST:
            raise NoSample(self._pattern)
        return least, most
