"""The author's schemas for fields of the contract."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.provider.contract_fields import complete_schema

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("own", "contract"),
    [
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"type": "array", "items": TEXT}, {"type": "array"}),
        (
            {"type": "object", "additionalProperties": TEXT},
            {"type": "object", "properties": {"host": TEXT}},
        ),
        ({"type": "object"}, {"type": "object", "additionalProperties": TEXT}),
    ],
)
def test_a_schema_for_items_or_values_is_the_author_s(
    own: dict[str, Any], contract: dict[str, Any]
) -> None:
    """The contract adds only properties."""
    assert complete_schema(own, contract) == own


@pytest.mark.parametrize("key", ["items", "additionalProperties"])
def test_items_and_values_get_the_properties_of_the_contract(key: str) -> None:
    contract = {key: {"properties": {"host": TEXT, "port": {"type": "integer"}}}}
    own = {key: {"properties": {"host": {**TEXT, "maxLength": 9}}}}
    assert complete_schema(own, contract) == {
        key: {"properties": {"host": {**TEXT, "maxLength": 9}, "port": {"type": "integer"}}}
    }
