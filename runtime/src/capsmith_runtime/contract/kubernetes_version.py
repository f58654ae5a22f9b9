"""Functions to normalise, order and count Kubernetes versions (CP-08 to CP-10)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

_NUMBER: Final = "0|[1-9][0-9]*"
_STAGE: Final = rf"(?:[0-9]*[A-Za-z-][0-9A-Za-z-]*|{_NUMBER})"
_BUILD: Final = "[0-9A-Za-z-]+"
_VERSION: Final = re.compile(
    rf"v?({_NUMBER})\.({_NUMBER})\.({_NUMBER})"
    rf"(?:-({_STAGE}(?:\.{_STAGE})*))?(?:\+({_BUILD}(?:\.{_BUILD})*))?"
)
_LARGEST: Final = 2**64 - 1
"""Largest number in a version; core cannot parse a larger one, except in build metadata."""
_Part = tuple[int, int, str]
SortKey = tuple[int, int, int, int, tuple[_Part, ...], tuple[_Part, ...]]


def normalize(version: str) -> str:
    """Return the version with a leading ``v``, which users may leave out (CP-08)."""
    return version if version.startswith("v") else f"v{version}"


def sort_key(version: str) -> SortKey:
    """Return the sort key of a semantic version; unlike in SemVer, build metadata count as well.

    Raises ValueError if the string is not a semantic version.
    """
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ValueError(f"{version!r} is not a semantic version")
    major, minor, patch, stage, build = match.groups()
    # A release comes after all its pre-releases.
    key = (int(major), int(minor), int(patch), int(stage is None), _parts(stage), _parts(build))
    if max(*key[:3], *(number for _, number, _ in key[4])) > _LARGEST:
        raise ValueError(f"{version!r} has a number that is too large")
    return key


def is_within_one_minor(one: str, other: str) -> bool:
    """Return whether two versions differ by at most one minor release.

    A leading ``v`` does not matter. Strings that are not versions differ from every version.
    """
    try:
        first, second = sort_key(one), sort_key(other)
    except ValueError:
        return False
    return first[0] == second[0] and abs(first[1] - second[1]) <= 1


def count_versions(versions: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return each version paired with its number of occurrences, from oldest to newest.

    Strings that are not versions are ignored.
    """
    known: dict[str, SortKey] = {}
    counter = Counter(versions)
    for version in counter:
        # A single Machine with an invalid version must not hide the versions of all others.
        with suppress(ValueError):
            known[version] = sort_key(version)
    return tuple((version, counter[version]) for version in sorted(known, key=known.__getitem__))


def _parts(text: str | None) -> tuple[_Part, ...]:
    # Numbers are ordered as numbers, and come before words.
    return tuple(
        (0, int(part), "") if part.isdigit() else (1, 0, part)
        for part in (text.split(".") if text else ())
    )
