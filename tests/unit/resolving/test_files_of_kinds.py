"""Files that kinds have: no other file has the same path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from capsmith import resources
from capsmith.blueprint.plan import load_manifest
from capsmith.provider.naming import pascal
from tests.invalid.cases import judge
from tests.unit.provider.described import BASE

_OTHERS = re.compile(r"\{(?!module\})\w+\}")
"""Placeholders of targets, except the module of a kind."""


def _list_taken_modules() -> Iterator[str]:
    """Yield the modules of kinds for which two rows of the manifest would have the same target."""
    text = (resources.blueprints() / "manifest.yaml").read_text(encoding="utf-8")
    targets = {_OTHERS.sub("x", row.target) for row in load_manifest(text, "manifest.yaml")}
    for target in targets:
        if "{module}" in target:
            pattern = re.escape(target).replace(r"\{module\}", "([a-z][a-z0-9_]*)")
            yield from (found[1] for each in targets if (found := re.fullmatch(pattern, each)))


def test_there_are_such_modules() -> None:
    assert {"client", "conformance", "extension", "kustomization"} <= set(_list_taken_modules())


@pytest.mark.parametrize("module", sorted(set(_list_taken_modules())))
def test_no_kind_has_a_file_that_another_row_has(module: str) -> None:
    kinds = {**BASE["infrastructure"], pascal(module): {"implements": "Resource"}}
    data = {
        **BASE,
        "infrastructure": kinds,
        "credentials": "AcmeIdentity",
        "runtimeExtension": {"hooks": ["GeneratePatches"]},
        "sdk": "boto3",
    }
    (finding,) = judge(json.dumps(data))
    assert finding.id == "kind-reserved"
