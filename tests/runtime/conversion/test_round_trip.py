"""Round trips: no kind loses anything, and both shapes are valid."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capsmith_runtime.conversion.objects import ANNOTATION
from tests.counting import counted_calls
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


BIG = 2_147_483_647


@pytest.mark.parametrize(
    ("first", "changed"),
    [
        ({"availableReplicas": BIG}, {"replicas": BIG}),
        (
            {"availableReplicas": BIG, "replicas": 0, "readyReplicas": BIG},
            {"replicas": BIG, "unavailableReplicas": BIG},
        ),
    ],
)
def test_a_count_of_two_fields_is_not_restored_if_one_of_them_changed(
    first: dict[str, int], changed: dict[str, int]
) -> None:
    there = converted(named("HarbourControlPlane", NEW, status=first), OLD)
    there["status"] = changed

    back = converted(there, NEW)

    expected = meaning(there, NEW)["status"]
    assert {"availableReplicas": 0, **back["status"]} == {"availableReplicas": 0, **expected}
    assert converted(back, OLD)["status"] == changed


def test_what_no_change_affects_is_restored_beside_such_a_count() -> None:
    first = {"availableReplicas": BIG, "replicas": 0, "upToDateReplicas": 3, "versions": []}
    there = converted(named("HarbourControlPlane", NEW, status=first), OLD)
    there["status"] |= {"replicas": BIG, "unavailableReplicas": BIG}

    status = converted(there, NEW)["status"]

    assert (status["replicas"], status["availableReplicas"]) == (BIG, 0)
    assert status["versions"] == []
    assert status["upToDateReplicas"] == 3


def test_a_count_that_cannot_be_is_not_lost() -> None:
    """There is no number of unavailable replicas from which -3 available ones follow."""
    obj = named("HarbourControlPlane", NEW, status={"availableReplicas": -3, "replicas": 5})
    assert converted(converted(obj, OLD), NEW) == obj


def test_an_annotation_with_many_fields_costs_few_conversions() -> None:
    status = {"availableReplicas": BIG, "replicas": 0, **{f"f{i}": i for i in range(5000)}}
    data = {"apiVersion": f"controlplane.cluster.x-k8s.io/{NEW}", "status": status}
    obj = named("HarbourControlPlane", OLD, status={"replicas": BIG, "unavailableReplicas": BIG})
    obj["metadata"]["annotations"] = {ANNOTATION: json.dumps(data)}

    with counted_calls() as calls:
        back = converted(obj, NEW)

    assert back["status"]["availableReplicas"] == 0
    assert calls[0] < 200_000, "each of the 5000 fields would take a conversion of all"


def test_every_type_of_component_is_tested() -> None:
    roles = {resource.role.value for resource in resources().values()}
    assert roles >= {
        *("InfraCluster", "InfraClusterTemplate", "InfraMachine", "InfraMachineTemplate"),
        *("InfraMachinePool", "InfraMachinePoolTemplate", "BootstrapConfig", "ControlPlane"),
        *("IPPool", "Addon", "Identity"),
    }
