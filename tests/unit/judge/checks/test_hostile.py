"""Manifests from other people may contain anything anywhere; checks return, and never raise."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from capsmith.contract.load import list_versions
from capsmith.judge.checks.evaluate import evaluate_manifests
from capsmith.manifests.parse import Manifest
from tests.rules.cases import Case, cases, contract, read

JUNK: list[Any] = [
    *(None, [], {}, 1, True, 1.5, "x", [{}], [[1]], [None]),
    *({"a": [1]}, {"kind": {}}, {5: "x", None: 1, "y": {3: 2}}),
]
ROUNDS = 6


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container in plain data with each of its keys."""
    entries = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in entries:
        yield data, key
        if isinstance(value, dict | list):
            yield from places(value)


def spoilt(manifests: list[Manifest], chance: random.Random) -> list[Manifest]:
    """Return the manifests with one to three values replaced by junk."""
    copies = [replace(m, document=copy.deepcopy(m.document)) for m in manifests]
    for _ in range(chance.randint(1, 3)):
        found = list(places(chance.choice(copies).document))
        if found:
            holder, key = chance.choice(found)
            holder[key] = copy.deepcopy(chance.choice(JUNK))
    return copies


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_malformed_manifests_never_raise(case: Case) -> None:
    chance = random.Random(case.name)
    for side in ("good", "bad"):
        manifests = read(case.folder / side)
        for version in list_versions() * (ROUNDS // 2):
            for finding in evaluate_manifests(spoilt(manifests, chance), contract(version)):
                assert finding.message
