"""Fields of the contract at other paths: read at the contract's path, written at the CRD's."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from capsmith_runtime.contract.field_paths import (
    FieldPaths,
    read_at_contract_paths,
    write_at_own_paths,
)

_REFERENCE = {"kind": "T", "name": "t"}
_TEMPLATE: FieldPaths = (("spec.machineTemplate.ref", "spec.template"),)
_SIBLING: FieldPaths = (("spec.machineTemplate.ref", "spec.machineTemplate.template"),)
_SWAPPED: FieldPaths = (("spec.a", "spec.b"), ("spec.b", "spec.a"))


@pytest.mark.parametrize(
    ("paths", "own", "contract"),
    [
        ((), {"template": _REFERENCE}, {"template": _REFERENCE}),
        (_TEMPLATE, {"template": _REFERENCE}, {"machineTemplate": {"ref": _REFERENCE}}),
        (
            _TEMPLATE,
            {"template": _REFERENCE, "machineTemplate": {"metadata": {}}},
            {"machineTemplate": {"ref": _REFERENCE, "metadata": {}}},
        ),
        (
            _SIBLING,
            {"machineTemplate": {"template": _REFERENCE}},
            {"machineTemplate": {"ref": _REFERENCE}},
        ),
        (_SWAPPED, {"a": 1, "b": 2}, {"a": 2, "b": 1}),
        (_TEMPLATE, {"replicas": 1}, {"replicas": 1}),
        (_TEMPLATE, {"template": None}, {"machineTemplate": {"ref": None}}),
    ],
)
def test_there_and_back(paths: FieldPaths, own: dict[str, Any], contract: dict[str, Any]) -> None:
    obj = {"kind": "P", "spec": own}
    before = copy.deepcopy(obj)
    moved = read_at_contract_paths(obj, paths)
    assert moved == {"kind": "P", "spec": contract}
    assert write_at_own_paths(moved, paths) == before == obj


@pytest.mark.parametrize("obj", [{}, {"spec": None}, {"spec": {"machineTemplate": "x"}}])
def test_objects_without_the_field_stay_as_they_are(obj: dict[str, Any]) -> None:
    assert read_at_contract_paths(obj, _SIBLING) == obj
