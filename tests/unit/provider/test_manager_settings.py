"""Flags and feature gates of a provider's managers."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.commands.build import build_checked
from tests.unit.provider.described import provider

FLAGS = {"endpoint": {"type": "string", "description": "URL of the cloud."}}
GATES = {"FastBoot": {"description": "Start servers from snapshots."}}


@pytest.mark.parametrize(
    ("manager", "has_module"),
    [
        ({"flags": FLAGS}, True),
        ({"featureGates": GATES}, True),
        ({"healthChecks": True}, False),
    ],
)
def test_flags_or_feature_gates_have_a_module(manager: dict[str, Any], has_module: bool) -> None:
    tree, findings = build_checked(provider(manager=manager), None)
    assert tree is not None, findings
    paths = [str(file.path) for file in tree]
    assert any(path.endswith("/_generated/manager.py") for path in paths) is has_module
