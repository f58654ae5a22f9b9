"""`Proves:` lines: the rules that tests claim to prove, and errors in these claims.

Tests are read as text, because those of generated repositories are blueprints. The line must be in
the docstring of a test function; anywhere else it is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.traceability.catalogue import ROOT, RULE_ID, Place
from tests.traceability.roots import TESTS

_TEST = re.compile(
    r"^(?P<indent>[ ]*)(?:async )?def (?P<name>test_\w+)\((?:[^()]|\([^()]*\))*\)[^:\n]*:\n"
    r'\s*"""(?P<text>.*?)"""',
    re.MULTILINE | re.DOTALL,
)
_CLASS = re.compile(r"^class (?P<name>\w+)", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*Proves:(.*)$", re.MULTILINE)
_IDS = re.compile(rf"[ ]{RULE_ID}(?:, {RULE_ID})*\.")
_SAYS = re.compile(r"\bProves:")


@dataclass(frozen=True, order=True)
class Claim:
    """A test, and a rule that it claims to prove."""

    rule: str
    place: Place
    test: str
    """As pytest prints it after the file: in a class, with the name of the class."""

    @property
    def file(self) -> str:
        return self.place.file


@dataclass(frozen=True)
class Claims:
    """All claims, and the errors in them."""

    claims: tuple[Claim, ...]
    mistakes: tuple[str, ...]


def read_claims(root: Path = ROOT) -> Claims:
    """Return every claim below :data:`~tests.traceability.roots.TESTS`."""
    claims: list[Claim] = []
    mistakes: list[str] = []
    for file in (file for source_root in TESTS for file in source_root.files(root)):
        found, wrong = _of_text(file.read_text(encoding="utf-8"), file.relative_to(root).as_posix())
        claims += found
        mistakes += wrong
    return Claims(tuple(sorted(claims)), tuple(mistakes))


def _of_text(text: str, file: str) -> tuple[list[Claim], list[str]]:
    claims: list[Claim] = []
    mistakes: list[str] = []
    seen: set[int] = set()
    classes = list(_CLASS.finditer(text))
    for test in _TEST.finditer(text):
        for line in _LINE.finditer(test["text"]):
            at = test.start("text") + line.start() + line[0].index("Proves:")
            seen.add(at)
            place = Place(file, _number(text, at))
            if not _IDS.fullmatch(line[1].rstrip()):
                mistakes.append(f"{place}: it has to read `Proves: AB-01, AB-02.`")
                continue
            name = _name(test, classes)
            claims += [Claim(id, place, name) for id in re.findall(RULE_ID, line[1])]
    for stray in _SAYS.finditer(text):
        if stray.start() not in seen:
            place = Place(file, _number(text, stray.start()))
            mistakes.append(f"{place}: `Proves:` belongs on a line of a test's docstring")
    return claims, mistakes


def _name(test: re.Match[str], classes: list[re.Match[str]]) -> str:
    """Return the name of a test as in its id; tests that are indented are in the class above."""
    above = [found["name"] for found in classes if found.start() < test.start()]
    return f"{above[-1]}::{test['name']}" if test["indent"] and above else test["name"]


def _number(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1
