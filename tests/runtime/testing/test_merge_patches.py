"""Merge patches of the fake API server, as Kubernetes applies them."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.testing.fake_api import merged


@pytest.mark.parametrize(
    ("value", "patch", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": None}, {"b": 2}),
        ({}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({"a": [1]}, {"a": [{"b": None, "c": {"d": None}}]}, {"a": [{"c": {}}]}),
        ({}, {"a": [{"b": None}]}, {"a": [{}]}),
        ({"a": 1}, {"a": [[{"b": None}], None]}, {"a": [[{}], None]}),
        ({"a": {"b": 1}}, {"a": [{"c": None}]}, {"a": [{"c": None}]}),
    ],
)
def test_nulls_are_removed_as_by_kubernetes(
    value: dict[str, Any], patch: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert merged(value, patch) == expected
