"""CRDs of apiextensions.k8s.io/v1beta1 mean the same as their form in v1."""

from __future__ import annotations

from typing import Any

from capsmith.importing.former_crds import convert_crd
from tests.unit.importing.crds import crd, manifests_of

_COLUMN = {"name": "Size", "type": "string"}


def _former(kind: str) -> dict[str, Any]:
    """Return a CRD as ``crd`` does, with what its version has in the places of v1beta1."""
    found = crd(kind, spec={"size": {"type": "string"}})
    (version,) = found["spec"].pop("versions")
    return {
        **found,
        "apiVersion": "apiextensions.k8s.io/v1beta1",
        "spec": {
            **found["spec"],
            "version": version["name"],
            "validation": version["schema"],
            "subresources": version["subresources"],
            "additionalPrinterColumns": [{**_COLUMN, "JSONPath": ".spec.size"}],
        },
    }


def _convert(document: dict[str, Any]) -> Any:
    (manifest,) = manifests_of(document)
    return convert_crd(manifest).document


def test_parts_of_all_versions_become_parts_of_each() -> None:
    columns = [{**_COLUMN, "jsonPath": ".spec.size"}]
    expected = crd("AcmeMachine", spec={"size": {"type": "string"}}, columns=columns)
    (version,) = expected["spec"]["versions"]

    converted = _convert(_former("AcmeMachine"))
    assert converted["apiVersion"] == "apiextensions.k8s.io/v1"
    assert converted["spec"]["versions"] == [version]

    listed = _former("AcmeMachine")
    names = {"v1alpha3": False, "v1beta1": True}
    listed["spec"]["versions"] = [
        {"name": name, "served": True, "storage": is_stored} for name, is_stored in names.items()
    ]
    assert _convert(listed)["spec"]["versions"] == [
        {**version, "name": name, "storage": is_stored} for name, is_stored in names.items()
    ]


def test_a_version_keeps_what_it_has() -> None:
    former = _former("AcmeMachine")
    own: dict[str, Any] = {"schema": {"openAPIV3Schema": {"type": "object"}}, "subresources": {}}
    former["spec"]["versions"] = [{"name": "v1", "served": True, "storage": True, **own}, 7]
    first, second = _convert(former)["spec"]["versions"]
    assert {key: first[key] for key in own} == own
    assert second == 7


def test_no_schema_becomes_one_that_keeps_all_fields() -> None:
    former = _former("AcmeMachine")
    del former["spec"]["validation"]
    (version,) = _convert(former)["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    assert schema == {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def test_crds_of_v1_stay_as_they_are() -> None:
    (manifest,) = manifests_of(crd("AcmeMachine"))
    assert convert_crd(manifest) is manifest
