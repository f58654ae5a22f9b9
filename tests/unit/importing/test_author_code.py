"""What import says about a repository whose own tests need code or fields that only authors add."""

from __future__ import annotations

from typing import Any

import yaml

from capsmith.commands.load import load_text
from capsmith.findings import Finding, Location
from capsmith.importing.author_code import find_author_code
from tests.unit.importing.crds import crd, imported, provider


def _find(*crds: dict[str, Any]) -> list[Finding]:
    loaded = load_text(imported(*crds).text, "provider.yaml").provider
    assert loaded is not None
    return list(find_author_code(loaded, lambda kind: Location("provider.yaml")))


def _found(*crds: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.id, each.message) for each in _find(*crds)]


def test_nothing_is_left_for_the_author_of_usual_crds() -> None:
    assert _found(*provider(spec={"size": {"type": "string"}})) == []


def test_limits_of_provider_ids_are_reported() -> None:
    crds = provider(spec={"providerID": {"type": "string", "minLength": 46}})
    ((id_, message),) = _found(*crds)
    assert id_ == "import-provider-id"
    assert "spec.providerID has minLength 46" in message
    assert "src/cluster_api_provider_acme/cloud.py" in message


def test_an_add_on_that_selects_clusters_otherwise_is_reported() -> None:
    selector = {"type": "object", "properties": {"name": {"type": "string"}}}
    chart = crd("AcmeChart", spec={"clusterSelector": selector}, group="addons.cluster.x-k8s.io")
    ((id_, message),) = _found(chart)
    assert id_ == "import-addon"
    assert "has no spec.clusterSelector.matchLabels" in message


def test_an_add_on_with_a_selector_of_labels_is_not_reported() -> None:
    labels = {"type": "object", "additionalProperties": {"type": "string"}}
    selector = {"type": "object", "properties": {"matchLabels": labels}}
    chart = crd("AcmeChart", spec={"clusterSelector": selector}, group="addons.cluster.x-k8s.io")
    assert _found(chart) == []


def test_a_control_plane_without_the_contract_s_reference_is_reported() -> None:
    spec = {
        "replicas": {"type": "integer", "format": "int32"},
        "version": {"type": "string"},
        "infrastructureTemplate": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    group = "controlplane.cluster.x-k8s.io"
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    ids = [id_ for id_, _ in _found(plane)]
    assert ids == ["import-control-plane"]


def test_a_reference_without_a_group_is_named() -> None:
    """It does not identify a kind, so that `contractFields.paths` cannot describe it."""
    names = {"kind": {"type": "string"}, "name": {"type": "string"}}
    spec = {
        "replicas": {"type": "integer", "format": "int32"},
        "version": {"type": "string"},
        "infrastructureTemplate": {"type": "object", "properties": names},
    }
    group = "controlplane.cluster.x-k8s.io"
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    ((_, message),) = _found(plane)
    assert "has no spec.machineTemplate (it has spec.infrastructureTemplate instead)" in message


def test_machines_without_a_version_are_reported() -> None:
    group = "controlplane.cluster.x-k8s.io"
    spec = {
        "replicas": {"type": "integer", "format": "int32"},
        "distributionVersion": {"type": "string"},
    }
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    (found,) = (each for each in _find(plane) if "has no spec.version" in each.message)
    assert (found.id, str(found.severity)) == ("import-control-plane", "info")


def test_a_managed_control_plane_with_a_version_in_its_status_only_is_reported() -> None:
    group = "controlplane.cluster.x-k8s.io"
    status = {"ready": {"type": "boolean"}, "version": {"type": "string"}}
    plane = crd("AcmeControlPlane", spec={"tier": {"type": "string"}}, group=group, status=status)
    ((id_, message),) = _found(plane)
    assert id_ == "import-control-plane"
    assert "has no spec.version, from which" in message


def test_a_managed_control_plane_needs_no_version() -> None:
    """As in NestedControlPlane of nested v0.1.0."""
    group = "controlplane.cluster.x-k8s.io"
    spec = {"etcd": {"type": "object", "properties": {"name": {"type": "string"}}}}
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    assert _found(plane) == []


def test_a_control_plane_without_any_reference_is_not_told_to_convert_one() -> None:
    spec = {"replicas": {"type": "integer", "format": "int32"}, "version": {"type": "string"}}
    group = "controlplane.cluster.x-k8s.io"
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    (found,) = _find(plane)
    assert "has no spec.machineTemplate, from which" in found.message
    assert found.hint == (
        "Add it to provider.yaml in a new API version; until then the tests of the control plane"
        " fail."
    )


def test_a_reference_at_another_path_is_described_also_in_a_template() -> None:
    """As in CK8sControlPlane of cluster-api-k8s: its template has the reference itself."""
    group = "controlplane.cluster.x-k8s.io"
    names = {key: {"type": "string"} for key in ("apiVersion", "apiGroup", "kind", "name")}
    spec = {
        "replicas": {"type": "integer", "format": "int32"},
        "version": {"type": "string"},
        "infrastructureTemplate": {"type": "object", "properties": names},
    }
    plane = crd("AcmeControlPlane", spec=spec, group=group, status={"ready": {"type": "boolean"}})
    inner = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    template = crd("AcmeControlPlaneTemplate", spec={"template": inner}, group=group)
    assert _find(plane) == _find(plane, template) == []
    found = imported(*provider(), plane, template)
    paths = {"spec.machineTemplate.spec.infrastructureRef": "spec.infrastructureTemplate"}
    entry = yaml.safe_load(found.text)["controlPlane"]["AcmeControlPlane"]
    assert entry["contractFields"]["paths"] == paths
    for made in (each for each in found.crds if each.role.startswith("ControlPlane")):
        assert not [each for each in made.differences if "infrastructure" in each.field]
    loaded = load_text(found.text, "provider.yaml")
    assert loaded.provider is not None
    assert loaded.provider.cluster_classes == loaded.provider.flavors == ()
