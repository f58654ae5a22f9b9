"""Literals in Go templates: numbers, texts and characters, as Go reads them."""

from __future__ import annotations

import math
import re

NUMBER = re.compile(
    r"[+-]?(?:0[xX](?:_?[0-9a-fA-F])+(?:[pP][+-]?[0-9]+)?|0[bB](?:_?[01])+|0[oO](?:_?[0-7])+"
    r"|[0-9](?:_?[0-9])*(?:\.(?:[0-9](?:_?[0-9])*)?(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)"
    r"|\.[0-9](?:_?[0-9])*(?:[eE][+-]?[0-9]+)?|0(?:_?[0-7])*(?![0-9])|[1-9](?:_?[0-9])*)"
    r"(?:[+-][0-9.]+i)?i?"
)
_LARGEST, _LARGEST_UNSIGNED = 2**63, 2**64
_LONGEST_NUMBER, _LONGEST_EXPONENT = 64, 4
_ESCAPES = re.compile(
    r"\\(?:[abfnrtv\\\"']|x[0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    r"|U(?!0000[dD][89a-fA-F])00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4}|[0-3][0-7]{2})"
)


def is_representable(number: str) -> bool:
    """Return whether Go can represent a number."""
    text = number.removesuffix("i").lower()
    is_hex = "x" in text
    if number.endswith("i") or (not is_hex and re.search("[.e]", text)):
        # The real and the imaginary part; the sign of an exponent does not separate them.
        parts = re.split(r"(?<=[0-9.])(?=[+-])", text)
        return not any(math.isinf(float(each)) for each in parts)
    if is_hex and "p" in text:
        return len(text.partition("p")[2]) <= _LONGEST_EXPONENT
    digits = text.lstrip("+-").replace("_", "")
    base = {"0x": 16, "0b": 2, "0o": 8}.get(digits[:2], 8 if digits.startswith("0") else 10)
    # Not one prefix after the other: the first digits of 0x0b1 look like a prefix as well.
    digits = (digits[2:] if digits[1:2] in ("x", "b", "o") else digits).lstrip("0") or "0"
    # Longer than any number of 64 bits in the base, and too long for Python.
    if len(digits) > _LONGEST_NUMBER:
        return False
    value = int(digits, base)
    if text.startswith("-"):
        return value <= _LARGEST
    return value < (_LARGEST if text.startswith("+") else _LARGEST_UNSIGNED)


def is_valid_text(literal: str) -> bool:
    """Return whether Go can unquote a string or character, given with its quotes."""
    mark, inner = literal[0], literal[1:-1]
    if mark == "`":
        return True
    is_long = mark == "'" and len(_ESCAPES.sub("a", inner)) != 1
    foreign = '\\"' if mark == "'" else "\\'"
    is_escaped = "\\" in _ESCAPES.sub("", inner) or foreign in literal.replace("\\\\", "")
    return not is_long and not is_escaped
