"""`Proves:` lines: what tests say that they prove, and what is wrong with saying so.

Tests are read as text, for those of generated repositories are blueprints.  The line stands in the
docstring of a test function; anywhere else it is a mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.traceability.carriers import PROJECT
from tests.traceability.catalogue import ROOT, RULE_ID, Place

_TEST = re.compile(
    r"^[ ]*(?:async )?def (?P<name>test_\w+)\((?:[^()]|\([^()]*\))*\)[^:\n]*:\n"
    r'\s*"""(?P<text>.*?)"""',
    re.MULTILINE | re.DOTALL,
)
_LINE = re.compile(r"^[ \t]*Proves:(.*)$", re.MULTILINE)
_IDS = re.compile(rf"[ ]{RULE_ID}(?:, {RULE_ID})*\.")
_SAYS = re.compile(r"\bProves:")
_OWN = "tests/traceability"


@dataclass(frozen=True, order=True)
class Claim:
    """One test and one rule that it says to prove."""

    rule: str
    place: Place
    test: str

    @property
    def file(self) -> str:
        return self.place.file


@dataclass(frozen=True)
class Claims:
    """What was read."""

    claims: tuple[Claim, ...]
    mistakes: tuple[str, ...]


def read_claims(root: Path = ROOT) -> Claims:
    """Every claim below ``tests`` and in the tests of generated repositories."""
    claims: list[Claim] = []
    mistakes: list[str] = []
    for file in _files(root):
        found, wrong = _of_text(file.read_text(encoding="utf-8"), file.relative_to(root).as_posix())
        claims += found
        mistakes += wrong
    return Claims(tuple(sorted(claims)), tuple(mistakes))


def _files(root: Path) -> Iterator[Path]:
    for file in sorted((root / "tests").rglob("*.py")):
        name = file.relative_to(root).as_posix()
        if not name.startswith(_OWN) and "/expected/" not in name:
            yield file
    yield from sorted((root / PROJECT / "tests").rglob("*.py.jinja"))


def _of_text(text: str, file: str) -> tuple[list[Claim], list[str]]:
    claims: list[Claim] = []
    mistakes: list[str] = []
    seen: set[int] = set()
    for test in _TEST.finditer(text):
        for line in _LINE.finditer(test["text"]):
            at = test.start("text") + line.start() + line[0].index("Proves:")
            seen.add(at)
            place = Place(file, _number(text, at))
            if not _IDS.fullmatch(line[1].rstrip()):
                mistakes.append(f"{place}: it has to read `Proves: AB-01, AB-02.`")
                continue
            claims += [Claim(id, place, test["name"]) for id in re.findall(RULE_ID, line[1])]
    for stray in _SAYS.finditer(text):
        if stray.start() not in seen:
            place = Place(file, _number(text, stray.start()))
            mistakes.append(f"{place}: `Proves:` belongs on a line of a test's docstring")
    return claims, mistakes


def _number(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
