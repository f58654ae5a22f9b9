"""Fields that differ between API versions: copied, converted by the author's code, or kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from capsmith_runtime.conversion.fields import SPEC, STATUS, PartFields, VersionFields
from capsmith_runtime.conversion.objects import (
    ANNOTATION,
    ConversionError,
    ConvertedKind,
    Converter,
)

GROUP = "infrastructure.example.com"
HUB, OLD, OTHER = "v1", "v1alpha1", "v1beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSpec:
    size: str
    zone: str | None = None
    rack: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSpec:
    size: str
    placement: str | None = None
    legacy: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOldSpec:
    placement: str | None = None
    legacy: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedHubSpec:
    zone: str | None = None
    rack: str | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    on: bool | None = field(default=None, metadata={"json": "poweredOn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HubPower:
    power: str | None = None


def to_hub(spec: OldSpec) -> ChangedHubSpec:
    if spec.placement is None:
        return ChangedHubSpec()
    zone, _, rack = spec.placement.partition("/")
    return ChangedHubSpec(zone=zone, rack=rack)


def from_hub(spec: HubSpec) -> ChangedOldSpec:
    if spec.zone is None or spec.rack is None:
        return ChangedOldSpec()
    return ChangedOldSpec(placement=f"{spec.zone}/{spec.rack}")


SPEC_FIELDS = PartFields(
    path=SPEC,
    spoke=OldSpec,
    hub=HubSpec,
    spoke_keys=frozenset({"placement", "legacy"}),
    hub_keys=frozenset({"zone", "rack", "profile"}),
    to_hub=to_hub,
    from_hub=from_hub,
)
STATUS_FIELDS = PartFields(
    path=STATUS,
    spoke=Power,
    hub=HubPower,
    spoke_keys=frozenset({"poweredOn"}),
    hub_keys=frozenset({"power"}),
    to_hub=lambda status: HubPower(
        power=None if status.on is None else "Running" if status.on else "Stopped"
    ),
    from_hub=lambda status: Power(on=None if status.power is None else status.power == "Running"),
)
KIND = ConvertedKind(
    group=GROUP,
    kind="AcmeMachine",
    contracts={HUB: "v1beta2", OTHER: "v1beta2", OLD: "v1beta2"},
    changes=(),
    hub=HUB,
    fields={
        OLD: VersionFields((SPEC_FIELDS, STATUS_FIELDS)),
        # No functions: what differs is kept in the annotation alone.
        OTHER: VersionFields((PartFields(path=SPEC, spoke_keys=frozenset({"region"})),)),
    },
)


def converter(kind: ConvertedKind = KIND) -> Converter:
    return Converter((kind,), lambda group, kind: "")


def named(version: str, **parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "AcmeMachine",
        "metadata": {"name": "one"},
        **parts,
    }


def converted(obj: dict[str, Any], version: str) -> dict[str, Any]:
    return converter().convert(obj, f"{GROUP}/{version}")


def annotation(obj: dict[str, Any]) -> str:
    return str(obj["metadata"].get("annotations", {}).get(ANNOTATION, ""))


def test_functions_fill_what_differs_and_the_rest_is_copied() -> None:
    """Proves: CRD-15."""
    old = named(
        OLD,
        spec={"size": "s", "placement": "a/b", "providerID": "acme://1"},
        status={"poweredOn": False, "addresses": [{"type": "InternalIP"}]},
    )

    new = converted(old, HUB)

    assert new["spec"] == {"size": "s", "zone": "a", "rack": "b", "providerID": "acme://1"}
    assert new["status"] == {"power": "Stopped", "addresses": [{"type": "InternalIP"}]}
    assert annotation(new) == ""
    assert converted(new, OLD) == old


def test_what_no_function_returns_comes_back_from_the_annotation() -> None:
    """Proves: CRD-15."""
    old = named(OLD, spec={"size": "s", "placement": "a/b", "legacy": 3})
    new = converted(old, HUB)
    assert "legacy" not in new["spec"]
    assert json.loads(annotation(new))["spec"] == old["spec"]

    # A controller of the hub changes something else, and something that a function returns.
    new["spec"] |= {"profile": "p", "rack": "c"}
    again = converted(new, OLD)

    assert again["spec"] == {"size": "s", "placement": "a/c", "legacy": 3}
    assert converted(again, HUB)["spec"] == new["spec"]


def test_every_version_keeps_its_own_fields() -> None:
    """Proves: CRD-15.

    The hub's object carries what two other versions alone have.
    """
    old = named(OLD, spec={"size": "s", "placement": "a/b", "legacy": 3})
    other = converted(old, OTHER)
    other["spec"]["region"] = "north"

    hub = converted(other, HUB)
    assert "region" not in hub["spec"]
    assert "legacy" not in hub["spec"]
    assert converted(hub, OLD) | {"metadata": {}} == old | {"metadata": {}}
    for _ in range(3):
        hub = converted(converted(hub, OLD), HUB)
        hub = converted(converted(hub, OTHER), HUB)

    assert converted(hub, OLD)["spec"] == old["spec"]
    assert converted(hub, OTHER)["spec"]["region"] == "north"
    assert len(json.loads(annotation(hub))["others"]) == 1


def test_versions_of_one_shape_differ_by_their_name_only() -> None:
    kind = replace(KIND, contracts={**KIND.contracts, "v1beta2": "v1beta2"})
    obj = named(HUB, spec={"size": "s", "profile": "p"})

    assert converter(kind).convert(obj, f"{GROUP}/v1beta2") == obj | {
        "apiVersion": f"{GROUP}/v1beta2"
    }


def test_data_of_another_schema_stay_readable() -> None:
    """An earlier release may have stored what no longer has the type of the field."""
    obj = named(HUB, spec={"size": "s", "zone": 7, "rack": "b"})

    old = converted(obj, OLD)

    assert old["spec"] == {"size": "s"}
    assert converted(old, HUB) == obj


def test_objects_without_spec_or_status_are_converted() -> None:
    assert converted(named(OLD), HUB) == named(HUB)
    assert converted(named(OLD, spec={}), HUB)["spec"] == {}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda spec: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda spec: None, "returned NoneType"),
        (lambda spec: ChangedHubSpec, "returned type"),
    ],
)
def test_failing_functions_are_named(function: Any, message: str) -> None:
    broken = VersionFields((replace(SPEC_FIELDS, to_hub=function),))
    kind = replace(KIND, fields={OLD: broken})

    with pytest.raises(ConversionError, match=f"AcmeMachine from v1alpha1 to v1: .*{message}"):
        converter(kind).convert(named(OLD, spec={"size": "s"}), f"{GROUP}/{HUB}")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"apiVersion": f"{GROUP}/{OLD}", "spec": {}, "others": [1]}),
        json.dumps({"apiVersion": f"{GROUP}/{OLD}", "spec": {}, "others": {"spec": {}}}),
        json.dumps([1]),
    ],
)
def test_annotations_of_another_format_change_nothing(text: str) -> None:
    obj = named(HUB, spec={"size": "s"})
    obj["metadata"]["annotations"] = {ANNOTATION: text}

    assert converted(obj, OLD)["spec"] == {"size": "s"}
