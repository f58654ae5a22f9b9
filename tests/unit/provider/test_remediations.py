"""Kinds that implement Remediation: their templates, labels, permissions and slice."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.commands.build import load_runtime_library
from capsmith.output.crd import build_crd
from capsmith.output.rbac import aggregate_permissions, list_manager_permissions
from capsmith.output.runtime import select_runtime
from capsmith.provider.model import Component, Provider
from tests.unit.provider.described import BASE, provider, resolved, resource

KIND: dict[str, Any] = {"implements": "Remediation", "spec": {"timeoutSeconds": "int32!"}}


@pytest.fixture
def made() -> Provider:
    return provider(infrastructure={**BASE["infrastructure"], "AcmeRestart": KIND})


def component_of(provider: Provider) -> Component:
    (component,) = provider.components
    return component


def test_a_template_holds_the_spec_of_its_kind(made: Provider) -> None:
    """Proves: ER-01, ER-02, ER-03, ER-06."""
    component = component_of(made)
    kind, template = (
        build_crd(resource(made, name), component)
        for name in ("AcmeRestart", "AcmeRestartTemplate")
    )
    for crd in (kind, template):
        assert crd["spec"]["scope"] == "Namespaced"
        assert crd["metadata"]["labels"]["cluster.x-k8s.io/v1beta2"] == "v1alpha1"
    schemas = [
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        for crd in (kind, template)
    ]
    inner = schemas[1]["properties"]["template"]["properties"]["spec"]
    assert inner["properties"] == schemas[0]["properties"]
    assert inner["required"] == ["timeoutSeconds"]
    assert kind["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert "subresources" not in template["spec"]["versions"][0]


def test_templates_move_without_owners_and_may_change(made: Provider) -> None:
    """Proves: MV-02."""
    template = resource(made, "AcmeRestartTemplate")
    labels = build_crd(template, component_of(made))["metadata"]["labels"]
    assert "clusterctl.cluster.x-k8s.io/move" in labels
    assert template not in component_of(made).immutable_templates


def test_core_creates_and_deletes_objects_and_reads_templates(made: Provider) -> None:
    """Proves: ER-04, ER-05."""
    declared = load_runtime_library().permissions
    granted = {
        name: each.verbs
        for each in aggregate_permissions(made, component_of(made), declared)
        for name in each.resources
    }
    assert granted["acmerestarts"] == ("create", "delete", "get", "list", "watch")
    assert granted["acmerestarttemplates"] == ("get", "list", "watch")


def test_the_manager_writes_conditions_of_machines(made: Provider) -> None:
    declared = load_runtime_library().permissions

    def list_status_verbs(provider: Provider) -> list[tuple[str, ...]]:
        found = list_manager_permissions(provider, component_of(provider), declared)
        return [each.verbs for each in found if "machines/status" in each.resources]

    assert list_status_verbs(made) == [("patch",)]
    assert list_status_verbs(provider()) == []


def test_only_providers_with_such_a_kind_carry_the_slice(made: Provider) -> None:
    library = load_runtime_library()
    assert "remediation" in select_runtime(made, library).slices
    assert "remediation" not in select_runtime(provider(), library).slices


@pytest.mark.parametrize(
    ("section", "name", "changes"),
    [
        ("infrastructure", "AcmeRestart", {"template": False}),
        ("infrastructure", "Remediation", {}),
        ("infrastructure", "AcmeRestart", {"scope": "Cluster"}),
        ("bootstrap", "AcmeRestart", {}),
    ],
)
def test_what_is_refused(section: str, name: str, changes: dict[str, Any]) -> None:
    """Core creates objects from templates, in the namespace of the Machine.

    Proves: ER-03.
    """
    kinds = {**BASE.get(section, {}), name: {**KIND, **changes}}
    assert resolved({**BASE, section: kinds}) is None
