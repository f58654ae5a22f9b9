"""Patches: exact, deterministic, and only of fields that core accepts."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsmith_runtime.extension.in_place import CAN_UPDATE_MACHINE_SET
from capsmith_runtime.extension.patches import copy_value, json_patch
from capsmith_runtime.extension.responses import InPlace
from capsmith_runtime.extension.topology import GENERATE_PATCHES, Patches
from tests.runtime.webhook.json_patch import patched

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text("ab/~", max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text("ab/~", max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("ab/~", max_size=3), JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_patch_turns_one_into_the_other(old: Any, new: Any) -> None:
    """Proves: RX-06."""
    operations = json_patch(old, new)

    assert json.dumps(patched(old, operations), sort_keys=True) == json.dumps(new, sort_keys=True)
    assert operations == json_patch(dict(reversed(old.items())), dict(reversed(new.items())))
    assert json_patch(old, old) == []


def test_true_is_not_one() -> None:
    assert json_patch({"a": 1}, {"a": True}) == [{"op": "replace", "path": "/a", "value": True}]


REQUEST = {
    "settings": {"flavour": "sweet"},
    "variables": [
        {"name": "size", "value": "small"},
        {"name": "zone", "value": "north"},
        {"name": "builtin", "value": {"cluster": {"name": "c1"}}},
    ],
    "items": [
        {
            "uid": "a",
            "holderReference": {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": "MachineDeployment",
                "namespace": "default",
                "name": "c1-md",
                "fieldPath": "spec.template.spec.infrastructureRef",
            },
            "object": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1",
                "kind": "AcmeMachineTemplate",
                "metadata": {"name": "t"},
                "spec": {"template": {"spec": {"size": "none", "tags": ["x"]}}},
            },
            "variables": [
                {"name": "size", "value": "large"},
                {"name": "builtin", "value": {"machineDeployment": {"class": "workers"}}},
            ],
        },
        {
            "uid": "b",
            "holderReference": {"kind": "Cluster", "fieldPath": "spec.controlPlaneRef"},
            "object": {
                "apiVersion": "controlplane.cluster.x-k8s.io/v1",
                "kind": "AcmeControlPlaneTemplate",
                "spec": {"template": {}},
            },
        },
        "nonsense",
    ],
}


def test_templates_are_found_by_kind_group_and_holder() -> None:
    asked = GENERATE_PATCHES.read(REQUEST)

    def uids(*args: str, **kwargs: str) -> list[str]:
        return [template.uid for template in asked.of(*args, **kwargs)]

    assert uids() == ["a", "b"]
    assert uids("AcmeMachineTemplate") == ["a"]
    assert uids(group="controlplane.cluster.x-k8s.io") == ["b"]
    assert uids(holder="MachineDeployment") == ["a"]
    assert uids("AcmeMachineTemplate", holder="Cluster") == []
    assert [template.is_infrastructure for template in asked.templates] == [True, False]
    assert asked.templates[0].holder.name == "c1-md"
    assert asked.settings == {"flavour": "sweet"}


def test_variables_of_a_template_come_before_global_ones() -> None:
    asked = GENERATE_PATCHES.read(REQUEST)
    machine, control_plane = (template.variables for template in asked.templates)

    assert (machine.value("size", str), machine.value("zone", str)) == ("large", "north")
    assert machine.value("other", str) is None
    assert machine.builtin("cluster", "name") == "c1"
    assert machine.builtin("machineDeployment", "class") == "workers"
    assert control_plane.value("size", str) == "small"
    assert control_plane.builtin("machineDeployment", "class") is None
    assert machine.mapping("unset") == {}
    with pytest.raises(ValueError, match="variable size: expected an object"):
        machine.mapping("size")


def decoded(item: dict[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(base64.b64decode(item["patch"]))
    return found


def test_edits_become_the_patch() -> None:
    asked = GENERATE_PATCHES.read(REQUEST)
    machine, control_plane = asked.templates
    patches = Patches()
    patches.edit(machine)["size"] = "large"
    patches.edit(machine)["tags"].append("y")
    patches.edit(control_plane)["a/b"] = 1
    found = patches.items()

    assert [item["uid"] for item in found] == ["a", "b"]
    assert {item["patchType"] for item in found} == {"JSONPatch"}
    path = "/spec/template/spec"
    assert decoded(found[0]) == [
        {"op": "replace", "path": f"{path}/size", "value": "large"},
        {"op": "replace", "path": f"{path}/tags", "value": ["x", "y"]},
    ]
    assert decoded(found[1]) == [{"op": "add", "path": path, "value": {"a/b": 1}}]
    assert machine.spec["tags"] == ["x"], "what came in is as it was"


def test_unchanged_templates_are_not_patched() -> None:
    asked = GENERATE_PATCHES.read(REQUEST)
    patches = Patches()
    for template in asked.templates:
        patches.edit(template)

    assert GENERATE_PATCHES.write(patches, asked) == {"items": []}


def test_only_included_changes_are_updated_in_place() -> None:
    request = {
        "current": {
            "machineSet": {"spec": {"template": {"spec": {"version": "v1", "gone": 1}}}},
            "infrastructureMachineTemplate": {"spec": {"template": {"spec": {"a": 1, "b": 1}}}},
        },
        "desired": {
            "machineSet": {"spec": {"template": {"spec": {"version": "v2"}}}},
            "infrastructureMachineTemplate": {
                "spec": {"template": {"spec": {"a": 2, "b": 2, "new": {"x": 1}}}}
            },
        },
    }
    asked = CAN_UPDATE_MACHINE_SET.read(request)
    spec = "/spec/template/spec"
    answer = InPlace(
        machine=[spec], infrastructure=[f"{spec}/a", f"{spec}/new", f"{spec}/c"], bootstrap=[spec]
    )
    found = CAN_UPDATE_MACHINE_SET.write(answer, asked)

    assert sorted(found) == ["infrastructureMachineTemplatePatch", "machineSetPatch"]
    assert decoded(found["machineSetPatch"]) == [
        {"op": "remove", "path": f"{spec}/gone"},
        {"op": "replace", "path": f"{spec}/version", "value": "v2"},
    ]
    assert decoded(found["infrastructureMachineTemplatePatch"]) == [
        {"op": "replace", "path": f"{spec}/a", "value": 2},
        {"op": "add", "path": f"{spec}/new", "value": {"x": 1}},
    ]


@pytest.mark.parametrize("pointer", ["", "spec", "spec/a"])
def test_invalid_pointers(pointer: str) -> None:
    with pytest.raises(ValueError, match="must start with a slash"):
        copy_value(pointer, {}, {})


def test_a_pointer_through_a_value_that_is_no_object() -> None:
    with pytest.raises(ValueError, match="spec is not an object"):
        copy_value("/spec/a", {"spec": {"a": 1}}, {"spec": 1})
