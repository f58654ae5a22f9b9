"""What is derived from a description, and what can be overridden."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith.commands.load import load_text
from capsmith.output.explain import explain_resolution
from capsmith.provider.model import Role
from tests.invalid.cases import CONTRACTS
from tests.unit.provider.described import BASE, example, provider, resolved, resource


def test_everything_follows_from_a_short_description() -> None:
    made = provider()
    assert made.title == "Acme"
    assert made.description == "Cluster API infrastructure provider for Acme."
    assert made.owner == "The acme provider authors"
    assert made.distribution == "cluster-api-provider-acme"
    assert made.package == "cluster_api_provider_acme"
    assert made.environment_prefix == "ACME"
    assert made.image == "ghcr.io/acme/cluster-api-acme-controller"
    assert made.licence == "Apache-2.0"
    assert (made.flavors, made.cluster_classes) == (("topology",), ("acme",))
    assert (made.credentials, made.rbac, made.dependencies) == (None, (), ())
    (component,) = made.components
    assert component.label == "infrastructure-acme"
    assert component.components_file == "infrastructure-components.yaml"
    assert component.namespace == "acme-system"
    assert [str(r.crd_name) for r in made.resources] == [
        f"acme{name}.infrastructure.cluster.x-k8s.io"
        for name in ("clusters", "clustertemplates", "machines", "machinetemplates")
    ]
    assert [r.short_names for r in made.resources] == [("acmecl",), (), ("acmem",), ()]
    assert {r.categories for r in made.resources} == {("cluster-api",)}
    assert {version.name for r in made.resources for version in r.versions} == {"v1alpha1"}


def test_everything_can_be_said() -> None:
    made = example("everything")
    assert made.title == "Nimbus Cloud"
    assert made.description.endswith("load balancers.")
    assert made.image == "ghcr.io/nimbus-cloud/capn-manager"
    assert (made.package, made.licence) == ("capn", "MIT")
    assert made.components[0].namespace == "capn-system"
    assert [str(release.series) for release in made.releases] == ["v0.3", "v0.2", "v0.1"]
    cluster = resource(made, "NimbusCluster")
    assert cluster.group == "infrastructure.nimbus.example.com"
    assert cluster.short_names == ("nbcl",)
    assert cluster.categories == ("cluster-api", "nimbus")
    assert cluster.storage_version.name == "v1beta1"
    assert [column.name for column in cluster.printer_columns] == ["Region", "Network"]
    assert made.credentials is not None
    assert made.credentials.keys == ("username", "password")
    assert made.rbac[0].resource_names == ("nimbus-regions",)
    assert [r.kind for r in made.components[0].role(Role.INFRA_MACHINE)] == [
        "NimbusMachine",
        "NimbusServer",
    ]


def test_resources_come_in_one_order() -> None:
    swapped = dict(reversed(BASE["infrastructure"].items()))
    made = provider(infrastructure=swapped, credentials="AcmeIdentity")
    assert [r.role.value for r in made.resources] == [
        "InfraCluster",
        "InfraClusterTemplate",
        "InfraMachine",
        "InfraMachineTemplate",
        "Identity",
    ]


@pytest.mark.parametrize(
    ("repository", "image"),
    [
        ("https://github.com/Acme/x", "ghcr.io/acme/cluster-api-acme-controller"),
        ("https://gitlab.com/a/b/x", "registry.gitlab.com/a/b/x/cluster-api-acme-controller"),
        ("https://git.example.com:8443/a/x", "git.example.com:8443/a/cluster-api-acme-controller"),
    ],
)
def test_the_image_follows_from_the_repository(repository: str, image: str) -> None:
    assert provider(repository=repository).image == image


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (["v1alpha1", "v1beta1", "v1alpha2"], "v1beta1"),
        (["v2alpha1", "v1"], "v1"),
        (["v1alpha2", "v1alpha10"], "v1alpha10"),
        ([{"name": "v1alpha1", "storage": True}, "v1"], "v1alpha1"),
        ([{"name": "v1alpha1", "served": False}, "v1"], "v1"),
    ],
)
def test_the_newest_version_is_stored_by_default(given: list[Any], stored: str) -> None:
    versions = provider(apiVersions=given).resources[0].versions
    assert [version.name for version in versions if version.storage] == [stored]
    assert len(versions) == len(given)


def test_a_name_that_begins_with_a_digit() -> None:
    namespaces = {"infrastructure": "three-par-system"}
    assert provider(name="3par", namespaces=namespaces).environment_prefix == "_3PAR"


def test_findings_on_contract_rules_link_to_them() -> None:
    data = {**BASE, "groups": {"infrastructure": "acme"}}
    (finding,) = load_text(json.dumps(data), "provider.yaml").findings
    assert finding.id == "CRD-05"
    assert finding.link == CONTRACTS["v1beta2"].rules["CRD-05"].source


@pytest.mark.parametrize("name", ["acme", "everything", "homelab", "homelab-v1beta1"])
def test_explanations_are_plain_and_complete(name: str) -> None:
    made = example(name)
    data = explain_resolution(made)

    def types(node: Any) -> set[type]:
        if isinstance(node, dict):
            return set().union(*(types(part) for pair in node.items() for part in pair))
        if isinstance(node, list):
            return set().union(*map(types, node)) if node else set()
        return {type(node)}

    assert types(data) <= {str, bool, int, type(None)}
    (component,) = data["components"]
    assert [r["kind"] for r in component["resources"]] == [str(r.kind) for r in made.resources]


def test_the_resolved_model_needs_no_pydantic() -> None:
    code = (
        "import sys, capsmith.provider.model, capsmith.contract.load, capsmith.blueprint.render;"
        "print('pydantic' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


KINDS = st.from_regex(r"[A-Z][A-Za-z0-9]{0,60}", fullmatch=True) | st.sampled_from(
    ["AcmeCluster", "Acmecluster", "True", "Class", "AcmeList", "A", "Series"]
)
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,60}[a-z0-9])?", fullmatch=True)
FIELDS = st.dictionaries(
    st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,12}", fullmatch=True),
    st.sampled_from(["string", "int32!", "boolean[]", {"type": "string", "immutable": True}]),
    max_size=4,
)


@st.composite
def descriptions(draw: st.DrawFn) -> dict[str, Any]:
    kinds = draw(st.lists(KINDS, min_size=2, max_size=4, unique=True))
    roles = ["InfraCluster", *["InfraMachine"] * (len(kinds) - 1)]
    data: dict[str, Any] = {
        **BASE,
        "name": draw(LABELS),
        "repository": f"https://github.com/{draw(LABELS)}/{draw(LABELS)}",
        "infrastructure": {
            kind: {
                "implements": role,
                "spec": draw(FIELDS),
                "shortNames": draw(st.lists(LABELS, max_size=2)),
            }
            for kind, role in zip(kinds, roles, strict=True)
        },
    }
    extra = {
        "credentials": KINDS,
        "groups": st.fixed_dictionaries(
            {"infrastructure": st.lists(LABELS, min_size=1).map(".".join)}
        ),
        "package": st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True),
        "flavors": st.lists(LABELS, max_size=2),
    }
    for key, values in extra.items():
        if draw(st.booleans()):
            data[key] = draw(values)
    return data


@given(descriptions())
@settings(max_examples=300)
def test_what_has_no_finding_can_be_built(data: dict[str, Any]) -> None:
    made = resolved(data)
    if made is None:
        return
    plurals = [r.crd_name for r in made.resources]
    assert len(set(plurals)) == len(plurals)
    assert len({r.module for r in made.resources}) == len(plurals)
    names = [{r.plural, r.singular, *r.short_names} for r in made.resources]
    assert len(set().union(*names)) == sum(map(len, names)), "kubectl could not tell kinds apart"
    for each in made.resources:
        assert len(each.finalizer.rpartition("/")[2]) <= 63
        attributes = [field.attribute for field in each.spec_fields]
        assert len(set(attributes)) == len(attributes)


def test_a_watched_kind_of_the_provider_has_its_own_plural() -> None:
    watch = {"kind": "AcmeQuota", "by": "ownerReference"}
    groups = ("infrastructure.cluster.x-k8s.io/v1alpha1", "example.com/v1")
    machine = {
        "implements": "InfraMachine",
        "watches": [{**watch, "apiVersion": each} for each in groups],
    }
    kinds = {**BASE["infrastructure"], "AcmeMachine": machine}
    made = provider(
        infrastructure={**kinds, "AcmeQuota": {"implements": "Resource", "plural": "acmequotae"}}
    )
    watches = resource(made, "AcmeMachine").watches
    assert [str(watch.plural) for watch in watches] == ["acmequotae", "acmequotas"]
