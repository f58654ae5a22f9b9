"""The API for authors of control planes."""

from __future__ import annotations

import pytest

from capsmith_runtime.contract import external_id
from capsmith_runtime.contract.model import Condition
from capsmith_runtime.controlplane import ControlPlaneHealth
from capsmith_runtime.testing.controlplane import control_plane


@pytest.mark.parametrize("names", [["Available"], ["Ready"], ["A", "A"]])
def test_conditions_of_the_runtime_are_reserved(names: list[str]) -> None:
    conditions = [Condition(type=name, status=True, reason="Fine") for name in names]

    with pytest.raises(ValueError, match="conditions"):
        ControlPlaneHealth(conditions=conditions)


def test_a_control_plane_has_a_short_id() -> None:
    scope = control_plane(None)

    assert scope.short_id == external_id.shorten(scope.external_id)
