"""What is generated keeps every checked rule, whatever a breach weighs."""

from __future__ import annotations

import pytest

from capsmith.commands.build import build, check_manifests
from capsmith.commands.load import load
from capsmith.contract.model import Level
from tests.golden.cases import Case, cases
from tests.rules.cases import LEFT_OUT, declined, left_out, rules


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_what_is_generated_breaks_no_rule(case: Case) -> None:
    provider = load(case.spec).provider
    assert provider is not None
    found = check_manifests(build(provider), provider)
    components = {str(component.config): component.type for component in provider.components}
    unexpected = [
        finding
        for finding in found
        if finding.id not in left_out(components.get(_config(finding.location.file), ""))
        and not (case.name == "everything" and finding.id in declined(finding.message))
    ]
    assert unexpected == []


def test_only_what_a_provider_may_do_is_left_out() -> None:
    levels = {rules()[id].level for ids in LEFT_OUT.values() for id in ids}
    assert levels == {Level.MAY}


def _config(file: str) -> str:
    """The folder of a component's manifests that a file is in."""
    folders, found, _ = file.partition("config/")
    return folders + found.removesuffix("/")
