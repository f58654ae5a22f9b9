"""Fields of the contract that one API version has at another path."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith_runtime.contract.field_paths import FieldPaths
from capsmith_runtime.conversion.objects import ConvertedKind, Converter
from capsmith_runtime.conversion.shape import Change

_GROUP, _OLD, _NEW = "controlplane.cluster.x-k8s.io", "v1alpha1", "v1beta1"
_FIRST = "spec.machineTemplate.infrastructureRef"
_SECOND = "spec.machineTemplate.spec.infrastructureRef"
_MOVED: FieldPaths = ((_FIRST, "spec.infrastructureTemplate"),)
_CHANGE = Change(tuple(_FIRST.split(".")), tuple(_SECOND.split(".")), "reference", False)
_GROUP_OF_TEMPLATE = "infrastructure.cluster.x-k8s.io"
_REFERENCE = {"apiVersion": f"{_GROUP_OF_TEMPLATE}/v1beta1", "kind": "AcmeTemplate", "name": "t"}
_NEWER = {"apiGroup": _GROUP_OF_TEMPLATE, "kind": "AcmeTemplate", "name": "t"}


def _convert(spec: dict[str, Any], source: str, target: str, **settings: Any) -> dict[str, Any]:
    contracts = settings.pop("contracts")
    kind = ConvertedKind(
        group=_GROUP, kind="AcmeControlPlane", contracts=contracts, hub=_NEW, **settings
    )
    obj = {
        "apiVersion": f"{_GROUP}/{source}",
        "kind": "AcmeControlPlane",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": spec,
    }
    converter = Converter((kind,), lambda group, kind: "v1beta1")
    converted = converter.convert(obj, f"{_GROUP}/{target}")
    back = converter.convert(converted, f"{_GROUP}/{source}")
    assert back["spec"] == spec
    # Nothing is lost, so that nothing has to be kept in an annotation.
    assert "annotations" not in converted["metadata"]
    found: dict[str, Any] = converted["spec"]
    return found


@pytest.mark.parametrize("template", [{}, {"metadata": {"labels": {"a": "b"}}}])
def test_an_older_version_has_the_reference_elsewhere(template: dict[str, Any]) -> None:
    rest = {"machineTemplate": template} if template else {}
    settings: dict[str, Any] = {
        "contracts": {_OLD: "v1beta1", _NEW: "v1beta1"},
        "changes": (),
        "paths": {_OLD: _MOVED},
    }
    spec = {"replicas": 1, "infrastructureTemplate": _REFERENCE, **rest}
    stored = {"replicas": 1, "machineTemplate": {"infrastructureRef": _REFERENCE, **template}}
    assert _convert(spec, _OLD, _NEW, **settings) == stored
    assert _convert(stored, _NEW, _OLD, **settings) == spec


@pytest.mark.parametrize("path", ["spec.infrastructureTemplate", "spec.template"])
def test_both_contracts_have_it_elsewhere(path: str) -> None:
    settings: dict[str, Any] = {
        "contracts": {_OLD: "v1beta1", _NEW: "v1beta2"},
        "changes": (_CHANGE,),
        "paths": {_OLD: _MOVED, _NEW: ((_SECOND, path),)},
    }
    older = {**_REFERENCE, "namespace": "default"}
    spec = {"infrastructureTemplate": older}
    stored = {path.removeprefix("spec."): _NEWER}
    assert _convert(spec, _OLD, _NEW, **settings) == stored
    assert _convert(stored, _NEW, _OLD, **settings) == spec
