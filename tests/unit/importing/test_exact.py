"""CRDs that lack what capsmith adds come back without it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from capsmith.importing.importer import ImportedCrd
from tests.unit.importing.crds import crd, imported, machine_of, provider, template_of


def _fields(found: ImportedCrd) -> list[str]:
    return [each.field for each in found.differences]


def test_a_whole_provider_comes_back_equal() -> None:
    found = imported(
        *provider(
            spec={"size": {"type": "string"}},
            status={
                "initialization": {
                    "type": "object",
                    "properties": {"provisioned": {"type": "boolean"}},
                },
                "done": {"type": "boolean"},
            },
        )
    )
    machine = next(each for each in found.crds if each.crd.kind == "AcmeMachine")
    template = next(each for each in found.crds if each.crd.kind == "AcmeMachineTemplate")
    assert not _fields(machine)
    assert not _fields(template)
    assert machine_of(found)["contractFields"]["without"] == ["status.conditions"]


def test_a_template_that_differs_from_its_kind_comes_back() -> None:
    crds = provider(spec={"size": {"type": "string"}, "disk": {"type": "integer"}})
    crds[3] = template_of("AcmeMachine", {"size": {"type": "string", "maxLength": 9}})
    found = imported(*crds)
    assert machine_of(found)["template"]["spec"] == {"size": {"type": "string", "maxLength": 9}}
    (template,) = (each for each in found.crds if each.crd.kind == "AcmeMachineTemplate")
    assert not _fields(template)


def test_a_kind_of_another_group_plural_and_version_comes_back() -> None:
    own: dict[str, Any] = {"group": "images.example.com", "plural": "pictures"}
    image = crd("AcmeImage", version="v1alpha1", status={"done": {"type": "boolean"}}, **own)
    status = image["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
    status |= {"required": ["done"], "minProperties": 1}
    found = imported(*provider(), image)
    entry = yaml.safe_load(found.text)["infrastructure"]["AcmeImage"]
    assert (entry["group"], entry["plural"]) == ("images.example.com", "pictures")
    assert entry["apiVersions"] == [{"name": "v1alpha1", "storage": True}]
    assert entry["partLimits"] == {"status": {"minProperties": 1, "required": ["done"]}}
    (same,) = (each for each in found.crds if each.crd.kind == "AcmeImage")
    assert not [each for each in same.differences if not each.is_addition]


def test_what_is_required_in_one_version_only_comes_back() -> None:
    crds = provider(spec={"size": {"type": "string"}}, around={"required": ["size"]})
    schema = crds[2]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["required"] = ["spec"]
    alpha = copy.deepcopy({**crds[2]["spec"]["versions"][0], "name": "v1alpha1", "storage": False})
    del alpha["schema"]["openAPIV3Schema"]["required"]
    crds[2]["spec"]["versions"].append(alpha)
    found = imported(*crds)
    assert machine_of(found)["versions"]["v1alpha1"]["requiredParts"] == []
    (machine,) = (each for each in found.crds if each.crd.kind == "AcmeMachine")
    assert not [each for each in machine.differences if each.what == "required"]


def test_fields_beside_the_spec_of_a_template_come_back() -> None:
    crds = provider()
    spec = crds[3]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["nodeReuse"] = {"type": "boolean", "default": False}
    spec["properties"]["template"]["properties"] |= {
        "kind": {"type": "string"},
        "metadata.omitempty": {"type": "object", "properties": {"labels": {"type": "object"}}},
    }
    found = imported(*crds)
    assert machine_of(found)["template"]["partFields"] == {
        "spec": {"nodeReuse": {"type": "boolean", "default": False}},
        "spec.template": {
            "kind": "string",
            "metadata.omitempty": {"type": "object", "properties": {"labels": {"type": "object"}}},
        },
    }
    (template,) = (each for each in found.crds if each.crd.kind == "AcmeMachineTemplate")
    assert [each for each in template.differences if not each.is_addition] == []


def test_a_template_has_a_status_in_one_version_only() -> None:
    crds = provider()
    current = crds[3]["spec"]["versions"][0]
    former = copy.deepcopy({**current, "name": "v1alpha1", "storage": False})
    zone = {"type": "object", "properties": {"zone": {"type": "string"}}}
    former["schema"]["openAPIV3Schema"]["properties"]["status"] = zone
    former["subresources"] = {"status": {}}
    crds[3]["spec"]["versions"].append(former)
    machine = crds[2]["spec"]["versions"]
    machine.append(copy.deepcopy({**machine[0], "name": "v1alpha1", "storage": False}))
    found = imported(*crds)
    assert machine_of(found)["template"]["versions"]["v1alpha1"]["status"] == {"zone": "string"}
    (template,) = (each for each in found.crds if each.crd.kind == "AcmeMachineTemplate")
    assert not [each for each in template.differences if each.field.startswith(".status")]


def test_one_version_under_two_contracts_follows_one_of_them() -> None:
    crds = provider()
    for each in crds:
        each["metadata"]["labels"]["cluster.x-k8s.io/v1beta1"] = "v1beta1"
    for each in crds[:2]:
        schema = each["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schema["properties"]["status"]["properties"]["initialization"] = {"type": "object"}
    contracts = yaml.safe_load(imported(*crds).text)["contracts"]
    assert len(contracts) == 1


@pytest.mark.parametrize(
    "path",
    [".status.addresses[].address", ".status.conditions[?(.type=='Ready')].status"],
)
def test_unusual_column_paths_that_the_api_server_reads_come_back(path: str) -> None:
    column = {"name": "First", "type": "string", "jsonPath": path}
    found = imported(*provider(columns=[column]))
    assert machine_of(found)["printerColumns"] == [column]
