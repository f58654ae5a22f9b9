"""Sections that are combined in one component: one provider for clusterctl, with one manager."""

from __future__ import annotations

from pathlib import Path

import pytest

from capsmith.commands.build import build_checked
from capsmith.commands.load import load_text
from capsmith.findings import Severity
from capsmith.output.crd import build_crd
from capsmith.output.explain import explain_resolution
from capsmith.provider.model import Component, Provider
from capsmith.tree import FileTree
from tests.unit.provider.permissions import manager_permissions, namespace_permissions
from tests.unit.provider.test_ipam import provider

EXAMPLE = Path(__file__).parents[3] / "examples" / "two-contracts" / "provider.yaml"
SECTIONS = "infrastructure, bootstrap, controlPlane, ipam"
LABEL = "cluster.x-k8s.io/provider"

Access = tuple[str, str, str]


def example(components: str = "") -> Provider:
    text = EXAMPLE.read_text(encoding="utf-8")
    return provider(f"{text}\ncomponents: {components}\n" if components else text)


@pytest.fixture(scope="module")
def combined() -> Provider:
    return example(f"{{infrastructure: [{SECTIONS}]}}")


@pytest.fixture(scope="module")
def tree(combined: Provider) -> FileTree:
    built, findings = build_checked(combined, None)
    assert [each for each in findings if each.severity is Severity.ERROR] == []
    assert built is not None
    return built


def test_other_sections_stay_components(combined: Provider) -> None:
    assert [each.type for each in combined.components] == ["infrastructure", "addon"]
    assert [each.type for each in example().components] == [
        *("infrastructure", "bootstrap", "control-plane", "ipam", "addon")
    ]


def test_the_component_has_the_type_of_its_key() -> None:
    main = example("{controlPlane: [bootstrap, controlPlane]}").component("bootstrap")

    assert main is not None
    assert (main.type, main.label, main.namespace, main.components_file) == (
        *("control-plane", "control-plane-harbour", "harbour-control-plane-system"),
        "control-plane-components.yaml",
    )
    assert main.types == ("control-plane", "bootstrap")


def test_all_kinds_carry_the_label_of_the_component(combined: Provider) -> None:
    """Proves: CC-51."""
    main = combined.components[0]
    labels = {build_crd(each, main)["metadata"]["labels"][LABEL] for each in main.resources}

    assert {each.kind for each in main.resources} == {
        each.kind for part in example().components[:4] for each in part.resources
    }
    assert labels == {"infrastructure-harbour"}


def test_a_part_has_its_own_kinds(combined: Provider) -> None:
    parts = [combined.components[0].part(type) for type in combined.components[0].types]
    separate = example().components[:4]

    assert [[each.kind for each in part.resources] for part in parts] == [
        [each.kind for each in component.resources] for component in separate
    ]


def test_the_manager_may_do_what_the_managers_of_the_sections_may(combined: Provider) -> None:
    apart = example()
    expected = {access for each in apart.components[:4] for access in _access(apart, each)}

    assert _access(combined, combined.components[0]) == expected


def test_one_manager_with_one_conversion_webhook(tree: FileTree) -> None:
    texts = {str(file.path): file.text for file in tree}
    wiring = {path: text for path, text in texts.items() if "/_generated/wiring/" in path}
    package = "src/cluster_api_provider_harbour/_generated"

    assert {path for path in texts if path.endswith("/manager/manager.yaml")} == {
        *("config/manager/manager.yaml", "addon/config/manager/manager.yaml")
    }
    assert sorted(path for path in texts if path.startswith(f"{package}/conversion/")) == [
        f"{package}/conversion/{name}.py"
        for name in (
            *("__init__", "addon", "harbour_machine_v1alpha1", "infrastructure", "versions"),
        )
    ]
    assert [path for path, text in sorted(wiring.items()) if "ConversionWebhook(" in text] == [
        *(f"{package}/wiring/addon.py", f"{package}/wiring/infrastructure.py")
    ]
    joined = "infrastructure.combined_with(bootstrap, control_plane, ipam)"
    assert joined in texts[f"{package}/wiring/__init__.py"]


def test_the_explanation_lists_the_types(combined: Provider) -> None:
    main, addon = explain_resolution(combined)["components"]

    assert main["furtherTypes"] == ["bootstrap", "control-plane", "ipam"]
    assert "furtherTypes" not in addon


def _access(provider: Provider, component: Component) -> set[Access]:
    """The permissions of a manager, without the names of the components' own objects."""
    found = (*manager_permissions(provider, component), *namespace_permissions(provider, component))
    return {
        (group, resource, verb)
        for each in found
        for group in each.groups
        for resource in each.resources
        for verb in each.verbs
    }


def test_a_component_of_a_section_that_does_not_exist() -> None:
    """The identities of a kind whose section is in no component cause no further finding."""
    text = """\
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
components: {infrastructure: [infrastructure, ipam]}
credentials: AcmeIdentity
ipam:
  AcmePool: {implements: IPPool, features: {credentials: true}}
"""
    loaded = load_text(text, "provider.yaml")
    assert loaded.provider is None
    assert {each.id for each in loaded.findings} == {"section-unused"}
