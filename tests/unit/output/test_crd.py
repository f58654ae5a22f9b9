"""provider/crd.py: the author's fields and the contract's in one CustomResourceDefinition."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.output.crd import build_contract_labels, build_crd, build_spec_schema
from capsmith.provider.fields import Field, PrinterColumn
from capsmith.provider.model import Provider, Resource, Role
from capsmith.safetext import Identifier
from tests.unit.provider.build import provider, resource, version


def crd(role: Role, made: Provider | None = None) -> dict[str, Any]:
    component = (made or provider()).components[0]
    return build_crd(component.role(role)[0], component)


def root(manifest: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def names(manifest: dict[str, Any]) -> list[str]:
    return [
        column["name"] for column in manifest["spec"]["versions"][0]["additionalPrinterColumns"]
    ]


def test_names_scope_and_conversion() -> None:
    manifest = crd(Role.INFRA_MACHINE)

    assert manifest["metadata"]["name"] == "acmemachines.infrastructure.cluster.x-k8s.io"
    assert manifest["spec"]["scope"] == "Namespaced"
    assert manifest["spec"]["conversion"] == {"strategy": "None"}
    assert manifest["spec"]["names"]["categories"] == ["cluster-api"]
    assert "shortNames" not in manifest["spec"]["names"]


def test_a_webhook_of_earlier_releases_stays_named() -> None:
    """clusterctl merges CRDs, and the API server refuses the webhook beside strategy None.

    Proves: CRD-15, CRD-16.
    """
    before, now = version(contract="v1beta1", storage=False), version("v1alpha2")
    made = resource()._replace(versions=(before, now))
    component = provider().components[0]
    converted = build_crd(made, component)["spec"]["conversion"]
    assert converted["strategy"] == "Webhook"

    dropped = made._replace(versions=(now,))
    former = (before.contract,)
    kept = build_crd(dropped, component, former)
    assert kept["spec"]["conversion"] == converted
    # No webhook is called for one version only, so none has to be trusted.
    assert "annotations" not in kept["metadata"]

    # For several versions the webhook is called, whether their shapes differ or not.
    several = made._replace(versions=(version("v1alpha1", storage=False), now))
    again = build_crd(several, component, former)
    assert again["spec"]["conversion"] == converted
    assert "cert-manager.io/inject-ca-from" in again["metadata"]["annotations"]


def test_versions_of_one_contract_are_not_converted() -> None:
    versions = (version("v1alpha1", storage=False), version("v1alpha2"))
    several = resource()._replace(versions=versions)
    manifest = build_crd(several, provider().components[0])
    assert manifest["spec"]["conversion"] == {"strategy": "None"}


def test_the_label_of_a_contract_of_before_names_nothing() -> None:
    """What is left out stays on a CRD that clusterctl merges.

    Proves: GEN-06.
    """
    before = provider("v1beta1").contracts
    made = provider("v1beta2")
    (component,) = made.components

    labels = build_crd(resource(), component, before)["metadata"]["labels"]

    assert labels["cluster.x-k8s.io/v1beta1"] == ""
    assert labels["cluster.x-k8s.io/v1beta2"] == "v1alpha1"


@pytest.mark.parametrize("contract", ["v1beta1", "v1beta2"])
def test_labels_for_core_clusterctl_and_move(contract: str) -> None:
    made = provider(contract, credentials=True)

    assert crd(Role.INFRA_MACHINE, made)["metadata"]["labels"] == {
        "cluster.x-k8s.io/provider": "infrastructure-acme",
        f"cluster.x-k8s.io/{contract}": "v1alpha1",
    }
    identity = crd(Role.IDENTITY, made)
    assert identity["spec"]["scope"] == "Cluster"
    assert identity["metadata"]["labels"]["clusterctl.cluster.x-k8s.io/move-hierarchy"] == ""


def test_a_contract_label_names_the_served_versions_only() -> None:
    versions = (
        version("v1alpha1", storage=False)._replace(served=False),
        version("v1alpha2", storage=False),
        version("v1beta1"),
    )
    two = resource()._replace(versions=versions)

    assert build_contract_labels(two) == {"cluster.x-k8s.io/v1beta2": "v1alpha2_v1beta1"}


def test_a_deprecated_version_says_so() -> None:
    versions = (
        version("v1alpha1", storage=False)._replace(deprecated=True),
        version("v1alpha2", storage=False)._replace(
            deprecated=True, deprecation_warning="use v1beta1"
        ),
        version("v1beta1"),
    )
    manifest = build_crd(resource()._replace(versions=versions), provider().components[0])
    said = [
        {key: value for key, value in each.items() if key.startswith("deprecat")}
        for each in manifest["spec"]["versions"]
    ]
    warning = {"deprecated": True, "deprecationWarning": "use v1beta1"}
    assert said == [{"deprecated": True}, warning, {}]


def test_the_authors_fields_stand_beside_the_contracts() -> None:
    spec = root(crd(Role.INFRA_MACHINE))["properties"]["spec"]

    assert list(spec["properties"]) == ["diskGiB", "providerID", "size"]
    assert spec["required"] == ["size"]
    assert root(crd(Role.INFRA_MACHINE))["required"] == ["spec"]


def test_each_contract_has_its_status() -> None:
    new = root(crd(Role.INFRA_MACHINE, provider("v1beta2")))["properties"]["status"]["properties"]
    old = root(crd(Role.INFRA_MACHINE, provider("v1beta1")))["properties"]["status"]["properties"]

    assert "initialization" in new
    assert "ready" not in new
    assert old["ready"] == {"description": old["ready"]["description"], "type": "boolean"}
    assert "initialization" not in old


def test_a_feature_that_is_left_out_takes_fields_and_columns_along() -> None:
    bare = provider(features=frozenset())

    assert (
        "addresses" not in root(crd(Role.INFRA_MACHINE, bare))["properties"]["status"]["properties"]
    )
    assert "IP" in names(crd(Role.INFRA_MACHINE))
    assert "IP" not in names(crd(Role.INFRA_MACHINE, bare))
    assert "controlPlaneEndpoint" not in str(root(crd(Role.INFRA_CLUSTER, bare)))


def test_a_template_wraps_the_objects_spec() -> None:
    manifest = crd(Role.INFRA_MACHINE_TEMPLATE)
    spec = root(manifest)["properties"]["spec"]
    template = spec["properties"]["template"]

    assert spec["required"] == ["template"]
    assert template["required"] == ["spec"]
    assert list(template["properties"]) == ["metadata", "spec"]
    assert template["properties"]["spec"]["required"] == ["size"]
    assert "status" not in root(manifest)["properties"]
    assert "subresources" not in manifest["spec"]["versions"][0]


def test_a_template_with_capacity_has_a_status() -> None:
    made = provider(features=frozenset({"capacity"}))
    manifest = crd(Role.INFRA_MACHINE_TEMPLATE, made)

    assert "capacity" in root(manifest)["properties"]["status"]["properties"]
    assert manifest["spec"]["versions"][0]["subresources"] == {"status": {}}


def test_a_template_holds_no_transition_rules() -> None:
    made = provider()
    kept = {"rule": "self.size() < 9", "message": "too long"}
    inner = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}, kept]}
    deep = Field(
        "deep",
        Identifier("deep"),
        {"type": "array", "items": {"type": "object", "properties": {"name": inner}}},
        False,
    )
    fields = (deep,)
    whole: dict[str, Any] = {"rule": "self.deep == oldSelf.deep", "message": "fixed"}
    template = (
        made.components[0]
        .role(Role.INFRA_CLUSTER_TEMPLATE)[0]
        ._replace(
            spec_fields=fields,
            spec_validations=(whole,),
        )
    )
    cluster = template._replace(role=Role.INFRA_CLUSTER)

    schema = build_spec_schema(template, template.storage_version)
    name = schema["properties"]["deep"]["items"]["properties"]["name"]
    assert name["x-kubernetes-validations"] == [kept]
    assert "x-kubernetes-validations" not in schema
    assert build_spec_schema(cluster, cluster.storage_version)["x-kubernetes-validations"] == [
        whole
    ]


def test_every_list_names_its_type() -> None:
    tags: dict[str, Any] = {
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}},
    }
    with_tags = resource(fields=(Field("tags", Identifier("tags"), tags, False),))
    schema = build_spec_schema(with_tags, with_tags.storage_version)["properties"]["tags"]

    assert schema["x-kubernetes-list-type"] == "atomic"
    assert schema["items"]["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-list-type" not in tags


def test_the_authors_columns_come_before_the_age() -> None:
    own = PrinterColumn("Size", "string", ".spec.size", 1, "How large")
    component = provider().components[0]
    manifest = build_crd(
        component.role(Role.INFRA_MACHINE)[0]._replace(printer_columns=(own,)), component
    )
    columns = manifest["spec"]["versions"][0]["additionalPrinterColumns"]

    assert names(manifest)[-2:] == ["Size", "Age"]
    assert columns[-2] == {
        "name": "Size",
        "type": "string",
        "jsonPath": ".spec.size",
        "description": "How large",
        "priority": 1,
    }


def test_status_fields_of_the_author_are_declared() -> None:
    field = Field("serverName", Identifier("server_name"), {"type": "string"}, False)
    component = provider().components[0]
    made: Resource = component.role(Role.INFRA_MACHINE)[0]._replace(status_fields=(field,))
    manifest = build_crd(made, component)

    assert root(manifest)["properties"]["status"]["properties"]["serverName"] == {"type": "string"}
