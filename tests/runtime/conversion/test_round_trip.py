"""Round trips: no kind loses anything, and both shapes are valid."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.runtime.conversion.kinds import NEW, OLD, converted, named, resources, schema
from tests.runtime.conversion.objects import objects

KINDS = sorted(resources())
ANNOTATIONS = st.sampled_from([None, {"mine": "1"}, {"mine": "1", "other": ""}])


@st.composite
def stored(draw: Any, version: str) -> dict[str, Any]:
    """Draw an object of any kind, possibly without spec or status."""
    kind = draw(st.sampled_from(KINDS))
    properties = schema(kind, version)["properties"]
    obj = named(kind, version)
    for part in ("spec", "status"):
        if part in properties and draw(st.integers(0, 5)):
            obj[part] = draw(st.just({}) | objects(properties[part]))
    annotations = draw(ANNOTATIONS)
    if annotations:
        obj["metadata"]["annotations"] = annotations
    return obj


def text(obj: dict[str, Any]) -> str:
    """Return text to compare, in which true is not 1."""
    return json.dumps(obj, sort_keys=True)


def meaning(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the object in the other shape, without conversion data."""
    bare = {**obj, "metadata": {"name": "one"}}
    return converted(bare, version)


checked = settings(
    max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


@pytest.mark.parametrize(("version", "other"), [(OLD, NEW), (NEW, OLD)])
@given(data=st.data())
@checked
def test_nothing_is_lost(version: str, other: str, data: st.DataObject) -> None:
    """Proves: CRD-15."""
    obj = data.draw(stored(version))
    before = copy.deepcopy(obj)

    there = converted(obj, other)
    back = converted(there, version)

    assert text(back) == text(obj) == text(before)
    assert text(converted(back, other)) == text(there)
    names = {**there["metadata"], "annotations": None}
    assert names == {**obj["metadata"], "annotations": None}


@pytest.mark.parametrize(("version", "other"), [(OLD, NEW), (NEW, OLD)])
@given(data=st.data())
@checked
def test_changes_in_between_are_kept(version: str, other: str, data: st.DataObject) -> None:
    """The last write counts: the annotation does not override it.

    Only where both shapes mean the same (false and absent, an empty status and none), an earlier
    one may return.
    """
    there = converted(data.draw(stored(version)), other)
    properties = schema(there["kind"], other)["properties"]
    part = data.draw(st.sampled_from([p for p in ("spec", "status") if p in properties]))
    there[part] = data.draw(objects(properties[part]))

    again = converted(converted(there, version), other)

    if again.get(part) != there[part]:
        assert meaning(again, version).get(part, {}) == meaning(there, version)[part]


def test_every_type_of_component_is_tested() -> None:
    roles = {resource.role.value for resource in resources().values()}
    assert roles >= {
        *("InfraCluster", "InfraClusterTemplate", "InfraMachine", "InfraMachineTemplate"),
        *("InfraMachinePool", "InfraMachinePoolTemplate", "BootstrapConfig", "ControlPlane"),
        *("IPPool", "Addon", "Identity"),
    }
