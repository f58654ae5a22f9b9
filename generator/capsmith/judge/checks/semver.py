"""Parse and compare semantic versions as core does."""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBER = r"0|[1-9][0-9]*+"
_IDENTIFIER = "[0-9A-Za-z-]+"
_STAGE = rf"(?:[0-9]*[A-Za-z-][0-9A-Za-z-]*|{_NUMBER})"
_VERSION = re.compile(
    rf"({_NUMBER})[.]({_NUMBER})[.]({_NUMBER})"
    rf"(?:-({_STAGE}(?:[.]{_STAGE})*))?(?:[+]({_IDENTIFIER}(?:[.]{_IDENTIFIER})*))?"
)
_SUFFIX = re.compile("[-+]")
_PARTS, _SHORTEST = 3, 2
_MOST_DIGITS, _LARGEST = 20, 2**64 - 1
_Identifier = tuple[int, int, str]


class SemanticVersion(NamedTuple):
    """A semantic version.  `is_later` compares two of them."""

    numbers: tuple[int, int, int]
    is_release: bool
    stage: tuple[_Identifier, ...]
    build: tuple[str, ...]


def parse_version(text: str) -> SemanticVersion | None:
    """Return the version in a text without a leading `v`; None if it is not a semantic version."""
    match = _VERSION.fullmatch(text)
    if match is None:
        return None
    *numbers, stage, build = match.groups()
    stages = stage.split(".") if stage else []
    if not all(map(_fits, (*numbers, *stages))):
        return None
    major, minor, patch = map(int, numbers)
    identifiers = tuple(map(_read_identifier, stages))
    parts = tuple(build.split(".")) if build else ()
    return SemanticVersion((major, minor, patch), stage is None, identifiers, parts)


def parse_tolerant(text: str) -> SemanticVersion | None:
    """Return the version in a text, which may be short, such as `v1.34`; None if there is none."""
    parts = text.strip().removeprefix("v").split(".", _PARTS - 1)
    parts = [_without_zeros(each) for each in parts]
    if len(parts) < _PARTS and _SUFFIX.search(parts[-1]):
        return None
    return parse_version(".".join((*parts, *["0"] * (_PARTS - len(parts)))))


def is_later(version: SemanticVersion, other: SemanticVersion) -> bool:
    """Return whether core may regard a version as later than another one.

    It cannot order versions whose build metadata differ in a word.
    """
    if version[:-1] != other[:-1]:
        return version[:-1] > other[:-1]
    for one, two in zip(version.build, other.build, strict=False):
        if one.isdigit() != two.isdigit():
            return two.isdigit()
        if one.isdigit() and _read_build(one) != _read_build(two):
            return _read_build(one) > _read_build(two)
        if not one.isdigit() and one != two:
            return True
    return len(version.build) > len(other.build)


def _without_zeros(part: str) -> str:
    if len(part) < _SHORTEST:
        return part
    rest = part.lstrip("0")
    return rest if rest[:1].isdecimal() else f"0{rest}"


def _fits(part: str) -> bool:
    """Return whether a part fits into 64 bits, if it is a number."""
    return not part.isdigit() or (len(part) <= _MOST_DIGITS and int(part) <= _LARGEST)


def _read_identifier(part: str) -> _Identifier:
    # Numbers are ordered as numbers, and come before words.
    return (0, int(part), "") if part.isdigit() else (1, 0, part)


def _read_build(part: str) -> int:
    """Return the number in build metadata; core limits it to 64 bits."""
    digits = part.lstrip("0")
    return int(digits or "0") if _fits(digits) else _LARGEST
