"""Which machines of a pool are outdated, by what was recorded when they were created."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.infrastructure.machine_pool.recorded_spec import build_record, is_outdated

SPEC = {"size": "s", "disk": {"gib": 20}}


@pytest.mark.parametrize(
    ("created", "found", "desired", "expected"),
    [
        pytest.param(SPEC, SPEC, SPEC, False, id="nothing changed"),
        pytest.param(SPEC, {**SPEC, "zone": "a"}, SPEC, False, id="a webhook fills a field"),
        pytest.param(SPEC, {**SPEC, "size": "xl"}, SPEC, False, id="a user edits the machine"),
        pytest.param(SPEC, SPEC, {**SPEC, "size": "m"}, True, id="a new value in the pool"),
        pytest.param(SPEC, SPEC, {**SPEC, "disk": {"gib": 21}}, True, id="inside an object"),
        pytest.param(SPEC, SPEC, {**SPEC, "zone": "b"}, True, id="a new field in the pool"),
        pytest.param(SPEC, SPEC, {"disk": {"gib": 20}}, True, id="a field is gone from the pool"),
        pytest.param(
            SPEC, {**SPEC, "zone": "a"}, {**SPEC, "zone": "b"}, True, id="filled in, then set"
        ),
        pytest.param(
            SPEC, {**SPEC, "tier": "x"}, {**SPEC, "tier": "x"}, False, id="a new default of both"
        ),
        pytest.param(
            {"gib": 20},
            {"sizeGiB": 20},
            {"sizeGiB": 20},
            False,
            id="a new name in the next version",
        ),
    ],
)
def test_only_what_the_pool_says_makes_machines_outdated(
    created: Any, found: Any, desired: Any, expected: bool
) -> None:
    assert is_outdated(build_record(created), found, desired) is expected


@pytest.mark.parametrize(
    "record", ["", "no JSON", "[]", "7", "[" * 100_000], ids=lambda record: record[:7]
)
def test_machines_without_record_need_what_the_pool_says(record: str) -> None:
    assert not is_outdated(record, {**SPEC, "zone": "a"}, SPEC)
    assert is_outdated(record, {**SPEC, "size": "m"}, SPEC)


def test_a_record_does_not_depend_on_the_order_of_fields() -> None:
    assert build_record({"a": {"b": 1, "c": 2}, "d": 3}) == build_record(
        {"d": 3, "a": {"c": 2, "b": 1}}
    )
