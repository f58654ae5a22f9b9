"""A patch release of the runtime runs with the manifests of every release of its series."""

from __future__ import annotations

import json

import pytest

from tests.runtime.requirements_of_series import RECORD, SERIES, requirements


@pytest.mark.parametrize("sort", ["permissions", "fields", "flags"])
def test_the_series_requires_nothing_new(sort: str) -> None:
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))[sort]
    new = sorted(set(requirements()[sort]) - set(recorded))

    assert recorded
    assert new == [], (
        f"{SERIES} needs {sort} that its manifests do not have: begin a new minor, or, while "
        f"{SERIES}.0 is not released, run python -m tests.runtime.requirements_of_series"
    )


def test_what_a_deployment_passes_stays_a_flag() -> None:
    """Manifests of the series name flags, so none may go."""
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))["flags"]

    assert set(recorded) <= set(requirements()["flags"])
