"""Content that any user may write fails no conversion, since one failure fails all lists."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.conversion.controllers import respond
from capsmith_runtime.conversion.fields import VersionFields
from capsmith_runtime.conversion.objects import ANNOTATION, ConversionError, Converter, is_equal
from capsmith_runtime.conversion.values import copy_value
from tests.runtime.conversion import test_fields as fields
from tests.runtime.conversion.kinds import NEW, OLD, kinds, named, resources

LONG = "9" * 400
DEEP: Any = {}
for _ in range(900):
    DEEP = {"a": DEEP}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just(LONG),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    *("ready", "initialization", "failureDomains", "conditions", "v1beta2", "failureReason"),
    *("replicas", "unavailableReplicas", "readyReplicas", "selector", "addresses", "version"),
    *("machineTemplate", "infrastructureRef", "nodeDrainTimeout", "nodeDeletionTimeout", "spec"),
    *("metadata", "name", "type", "status", "reason", "message", "template", "deletion"),
)
PART = st.recursive(
    JSON | st.just({"nodeDrainTimeout": f"{LONG}h"}),
    lambda inner: st.dictionaries(st.sampled_from(NAMES), inner, max_size=5)
    | st.lists(inner, max_size=2),
    max_leaves=12,
)


def other(version: str) -> str:
    return NEW if version == OLD else OLD


def convert(obj: dict[str, Any]) -> tuple[dict[str, Any], list[Exception]]:
    """Return the object in the other version, and what was reported."""
    reported: list[Exception] = []
    converter = Converter(kinds(), lambda group, kind: "v1beta1", reported.append)
    group, _, version = obj["apiVersion"].rpartition("/")
    return converter.convert(obj, f"{group}/{other(version)}"), reported


def annotated(obj: dict[str, Any], data: Any) -> dict[str, Any]:
    text = data if isinstance(data, str) else json.dumps(data)
    return {**obj, "metadata": {**obj["metadata"], "annotations": {ANNOTATION: text}}}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (
            "HarbourControlPlane",
            {"spec": {"machineTemplate": {"nodeDrainTimeout": f"{LONG}h"}}},
        ),
        ("HarbourCluster", {"status": {"failureDomains": DEEP}}),
        ("HarbourCluster", {"status": {"failureDomains": [{"name": {"a": 1}}]}}),
    ],
)
def test_an_annotation_is_left_alone_if_it_cannot_be_used(kind: str, data: Any) -> None:
    group = resources()[kind].group
    for version in (OLD, NEW):
        plain = named(kind, version, spec={}, status={"conditions": []})
        hostile = annotated(plain, {"apiVersion": f"{group}/{other(version)}", **data})
        found, _ = convert(hostile)
        expected, _ = convert(plain)
        for part in ("spec", "status"):
            assert found[part].keys() >= expected[part].keys()


@given(kind=st.sampled_from(sorted(resources())), is_old=st.booleans(), data=PART, text=PART)
def test_no_content_fails_a_conversion(kind: str, is_old: bool, data: Any, text: Any) -> None:
    version = OLD if is_old else NEW
    obj = named(kind, version, spec=data, status=text)
    convert(obj)
    entry = {"apiVersion": f"{resources()[kind].group}/{other(version)}", "spec": text}
    found, _ = convert(annotated(obj, {**entry, "status": data}))
    json.dumps(found)


def test_data_of_an_annotation_that_a_function_refuses() -> None:
    """No schema has validated them, so the function may get what its pattern excludes."""

    def split(spec: Any) -> Any:
        zone, rack = spec.placement.split("/")
        return fields.ChangedHubSpec(zone=zone, rack=rack)

    kind = replace(
        fields.KIND,
        fields={fields.OLD: VersionFields((replace(fields.SPEC_FIELDS, to_hub=split),))},
    )
    reported: list[Exception] = []
    converter = Converter((kind,), lambda group, kind: "", reported.append)
    data = {"apiVersion": f"{fields.GROUP}/{fields.OLD}", "spec": {"placement": "noslash"}}
    obj = annotated(fields.named(fields.HUB, spec={"size": "s"}), data)

    found = converter.convert(obj, f"{fields.GROUP}/{fields.OLD}")

    assert found["spec"]["size"] == "s"
    assert reported


def test_a_function_that_fails_for_a_stored_object_leaves_its_fields_out() -> None:
    """Lists go on; on the way to the hub, as in a create, the function may refuse an object."""

    def fail(spec: Any) -> Any:
        raise ValueError("no such zone")

    broken = VersionFields((replace(fields.SPEC_FIELDS, to_hub=fail, from_hub=fail),))
    kind = replace(fields.KIND, fields={fields.OLD: broken})
    reported: list[Exception] = []
    converter = Converter((kind,), lambda group, kind: "", reported.append)
    stored = fields.named(fields.HUB, spec={"size": "s", "zone": "a", "rack": "b"})

    old = converter.convert(stored, f"{fields.GROUP}/{fields.OLD}")

    assert old["spec"] == {"size": "s"}
    assert "no such zone" in str(reported[0])
    with pytest.raises(ConversionError, match="no such zone"):
        converter.convert(
            fields.named(fields.OLD, spec={"size": "s"}), f"{fields.GROUP}/{fields.HUB}"
        )


def test_a_function_that_refuses_an_object_is_no_fault_of_its_annotation() -> None:
    def fail(spec: Any) -> Any:
        raise ValueError("no such zone")

    broken = VersionFields((replace(fields.SPEC_FIELDS, to_hub=fail),))
    kind = replace(fields.KIND, fields={fields.OLD: broken})
    reported: list[Exception] = []
    converter = Converter((kind,), lambda group, kind: "", reported.append)
    data = {"apiVersion": f"{fields.GROUP}/{fields.HUB}", "spec": {"size": "s"}}
    obj = annotated(fields.named(fields.OLD, spec={"size": "s"}), data)

    with pytest.raises(ConversionError, match="no such zone"):
        converter.convert(obj, f"{fields.GROUP}/{fields.HUB}")
    assert reported == []


@pytest.mark.parametrize(
    ("metadata", "shown"),
    [
        ({"namespace": "default", "name": "one"}, "default/one: "),
        ({"namespace": "default", "generateName": "one-"}, "default/one-: "),
        (None, ""),
    ],
    ids=["named", "unnamed", "no metadata"],
)
def test_a_failure_names_the_object(metadata: Any, shown: str) -> None:
    """A response, not a lost connection, which the API server would repeat for a minute.

    An object is converted before the API server generates its name.
    """

    def fail(group: str, kind: str) -> str:
        raise OverflowError("too large")

    reference = {"apiGroup": "example.com", "kind": "Other", "name": "t"}
    spec = {"machineTemplate": {"spec": {"infrastructureRef": reference}}}
    request = {
        "uid": "7",
        "desiredAPIVersion": f"{resources()['HarbourControlPlane'].group}/{OLD}",
        "objects": [{**named("HarbourControlPlane", NEW, spec=spec), "metadata": metadata}],
    }
    review = {"apiVersion": "apiextensions.k8s.io/v1", "request": request}

    result = asyncio.run(respond(review, Converter(kinds(), fail)))["response"]["result"]

    assert result == {"status": "Failure", "message": f"{shown}OverflowError: too large"}


def test_a_copy_shares_no_part_with_its_original() -> None:
    value: dict[str, Any] = {"a": [{"b": [1, True, None, "x"]}, []], "c": {}}
    copied = copy_value(value)
    assert is_equal(copied, value)
    copied["a"][0]["b"].append(2)
    copied["c"]["d"] = 1
    assert value == {"a": [{"b": [1, True, None, "x"]}, []], "c": {}}
