"""Every rule of the contract and on releases, and the line of the data file that contains it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from capsmith.contract.load import load_all_rules
from capsmith.contract.model import Rule

ROOT = Path(__file__).parents[2]
RULE_ID = r"[A-Z]{2,3}-[0-9]{2}"

_CONTRACTS, _RELEASES = "contracts/*/rules/*.yaml", "releases/*.yaml"
_ENTRY = re.compile(rf"^\s*-\s*\{{?\s*id:\s*({RULE_ID})\b")


@dataclass(frozen=True, order=True)
class Place:
    """A line of a file below the repository's root."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Placed:
    """A rule and where it is written."""

    rule: Rule
    place: Place


def catalogue(root: Path = ROOT) -> dict[str, Placed]:
    """Return all rules by id, in order; fail if a rule's line is not found."""
    schemas = root / "schemas"
    places = {
        found[1]: Place(file.relative_to(root).as_posix(), number)
        for file in sorted([*schemas.glob(_CONTRACTS), *schemas.glob(_RELEASES)])
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1)
        if (found := _ENTRY.match(line))
    }
    return {id: Placed(rule, places[id]) for id, rule in load_all_rules(schemas).items()}
