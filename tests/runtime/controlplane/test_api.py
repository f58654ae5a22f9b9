"""The API for authors of control planes."""

from __future__ import annotations

import pytest

from capsmith_runtime.contract.model import Condition
from capsmith_runtime.controlplane import ControlPlaneHealth


@pytest.mark.parametrize("names", [["Available"], ["Ready"], ["A", "A"]])
def test_conditions_of_the_runtime_are_reserved(names: list[str]) -> None:
    conditions = [Condition(type=name, status=True, reason="Fine") for name in names]

    with pytest.raises(ValueError, match="conditions"):
        ControlPlaneHealth(conditions=conditions)
