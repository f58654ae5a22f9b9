"""What a fake management cluster can see of objects whose CRDs lack fields of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.environment import TestEnvironment
from capsmith_runtime.testing.provider import ProviderUnderTest

_READY = {"type": "Ready", "status": "True", "reason": "Ready"}


def _crd(kind: str, status: JSON) -> JSON:
    schema = {"type": "object", "properties": {"status": {"type": "object", "properties": status}}}
    version = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind, "labels": {"cluster.x-k8s.io/v1beta2": "v1"}},
        "spec": {"group": "acme.io", "names": {"kind": kind}, "versions": [version]},
    }


@pytest.fixture
def env(tmp_path: Path) -> TestEnvironment:
    folder = tmp_path / "config" / "crd"
    folder.mkdir(parents=True)
    crds = [_crd("Full", {"conditions": {"type": "array"}}), _crd("Bare", {})]
    (folder / "crds.yaml").write_text(yaml.safe_dump_all(crds))
    component = Component(label="x", namespace="x-system", contract="v1beta2", groups=())
    provider = ProviderUnderTest(components={"x": component}, repository=tmp_path)
    return TestEnvironment(provider, component, "v1beta2")


def _object(kind: str, *conditions: JSON) -> JSON:
    return {"apiVersion": "acme.io/v1", "kind": kind, "status": {"conditions": list(conditions)}}


def test_conditions_are_compared_where_the_crd_has_them(env: TestEnvironment) -> None:
    ready = _object("Full", _READY)
    assert env.shows(ready, "Ready", "True", "Ready")
    assert env.shows(ready, "Ready", "True")
    assert not env.shows(ready, "Ready", "True", "Other")
    assert not env.shows(ready, "Paused", "True")


def test_nothing_is_expected_of_a_kind_without_conditions(env: TestEnvironment) -> None:
    assert env.shows(_object("Bare"), "Ready", "True", "Ready")
    assert not env.has_conditions(_object("Bare"))
    assert not env.has_field(_object("Full"), "spec", "rollout", "after")
