"""CHANGELOG.md: its sections, what is wrong with them, and the notes of a release."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from packaging.version import InvalidVersion, Version

CHANGELOG = "CHANGELOG.md"
UNRELEASED = "Unreleased"
_HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d{2}-\d{2}))?$", re.MULTILINE)
_LONG = 40
"""Characters from which a line is no chance repetition."""


class Section(NamedTuple):
    """A release in the changelog, or what is not released yet."""

    name: str
    date: str
    """Empty for what is not released."""
    text: str
    """Without the heading."""
    line: int


def sections(root: Path) -> list[Section]:
    """Return the sections of CHANGELOG.md in their order."""
    text = (root / CHANGELOG).read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    ends = [*(each.start() for each in headings), len(text)][1:]
    return [
        Section(
            each["name"],
            each["date"] or "",
            text[each.end() : end].strip(),
            text.count("\n", 0, each.start()) + 1,
        )
        for each, end in zip(headings, ends, strict=True)
    ]


def release_notes(root: Path, version: str) -> str:
    """Return the text of the section of ``version``, or of what is not released yet."""
    texts = {each.name: each.text for each in sections(root)}
    return (texts.get(version) or texts.get(UNRELEASED, "")) + "\n"


def changelog_disagreements(root: Path, version: str, tag: str | None) -> Iterator[str]:
    """Yield what is wrong with CHANGELOG.md for a release of ``version``.

    Without a ``tag`` its entries may still be under Unreleased.
    """
    found = sections(root)
    if not found or found[0].name != UNRELEASED:
        yield f"{CHANGELOG}: the first section has to be [{UNRELEASED}]"
        return
    released = found[1:]
    current = next((each for each in released if each.name == version), None)
    if current is None and (tag is not None or not found[0].text):
        yield f"{CHANGELOG}:{found[0].line}: there is no section [{version}]"
    if current is not None and tag is not None and found[0].text:
        yield f"{CHANGELOG}:{found[0].line}: [{UNRELEASED}] has entries that {version} lacks"
    yield from _wrong_order(released, version)
    for section in found:
        yield from _repetitions(section)


def _wrong_order(released: list[Section], version: str) -> Iterator[str]:
    later: Version | None = None
    for section in released:
        place = f"{CHANGELOG}:{section.line}: [{section.name}]"
        try:
            own = Version(section.name)
        except InvalidVersion:
            yield f"{place} is no version"
            continue
        if not section.date:
            yield f"{place} has no date"
        if not section.text:
            yield f"{place} is empty"
        if own > Version(version):
            yield f"{place} is later than the package, which is {version}"
        if later is not None and own >= later:
            yield f"{place} has to stand above [{later}]"
        later = own


def _repetitions(section: Section) -> Iterator[str]:
    place = f"{CHANGELOG}:{section.line}: [{section.name}]"
    lines = Counter(line.strip() for line in section.text.splitlines())
    for line, number in lines.items():
        if number > 1 and (line.startswith("### ") or len(line) >= _LONG):
            yield f"{place} has this line {number} times: {line}"
