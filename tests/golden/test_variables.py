"""The variables that clusterctl replaces in generated components."""

from __future__ import annotations

import re

import pytest
import yaml

from tests.golden.cases import Case, cases

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)")
_SHARED = {"KUBEADM_BOOTSTRAP_NAMESPACE"}
"""The same in each provider, for it says something of a provider that is there once."""


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_variables_begin_with_the_name_of_the_provider(case: Case) -> None:
    """Proves: CC-44."""
    name = yaml.safe_load(case.spec.read_text(encoding="utf-8"))["name"]
    prefix = f"{name.upper().replace('-', '_')}_"
    found = {
        variable
        for folder in case.expected.rglob("config")
        for file in folder.rglob("*.yaml")
        for variable in _VARIABLE.findall(file.read_text(encoding="utf-8"))
    }

    assert found
    assert not {each for each in found - _SHARED if not each.startswith(prefix)}
