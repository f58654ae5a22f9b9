"""Providers of addresses: fields of pools, what moves, permissions, and machines that ask."""

from __future__ import annotations

from typing import Any

from capsmith.output.crd import build_crd
from capsmith.output.explain import explain_resolution
from capsmith.output.samples import sample_spec
from capsmith.provider.model import Component, Provider
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
from tests.invalid.cases import CONTRACTS
from tests.unit.output.test_rbac import verbs
from tests.unit.provider.permissions import (
    aggregate_permissions,
    manager_permissions,
    namespace_permissions,
)

GROUP = "ipam.cluster.x-k8s.io"
MOVE, HIERARCHY = (f"clusterctl.cluster.x-k8s.io/{name}" for name in ("move", "move-hierarchy"))
RANGES = {"addresses", "prefix", "gateway", "excludedAddresses", "allocateReserved"}

TEXT = """
capsmith: 1
name: acme
repository: https://github.com/acme/cluster-api-provider-acme
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  AcmeCluster: {implements: InfraCluster}
  AcmeMachine: {implements: InfraMachine, features: {addressesFromPools: true}}
ipam:
  AcmeIPPool: {implements: IPPool}
  GlobalAcmeIPPool: {implements: GlobalIPPool, spec: {site: string!}}
  AcmeElsewherePool: {implements: IPPool, features: {ranges: false}}
"""


def provider(text: str = TEXT) -> Provider:
    parsed = parse(text, "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    found = resolve(parsed.spec, parsed.document, CONTRACTS).provider
    assert found is not None
    return found


def component(type: str) -> Component:
    (found,) = (each for each in provider().components if each.type == type)
    return found


def crd(kind: str, type: str = "ipam") -> dict[str, Any]:
    of = component(type)
    (resource,) = (each for each in of.resources if each.kind == kind)
    return build_crd(resource, of)


def spec_of(document: dict[str, Any]) -> dict[str, Any]:
    (version,) = document["spec"]["versions"]
    found: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def test_pools_have_ranges_and_what_the_author_adds() -> None:
    """Proves: IP-02, IP-03."""
    plain, whole = spec_of(crd("AcmeIPPool")), spec_of(crd("GlobalAcmeIPPool"))

    assert set(plain["properties"]) == RANGES
    assert plain["required"] == ["addresses", "prefix"]
    assert set(whole["properties"]) == RANGES | {"site"}
    assert whole["required"] == ["addresses", "prefix", "site"]


def test_pools_of_another_system_have_no_ranges() -> None:
    """Proves: IP-02."""
    assert spec_of(crd("AcmeElsewherePool"))["properties"] == {}


def test_pools_of_another_system_may_have_a_prefix_and_a_gateway_of_their_own() -> None:
    own = "{prefix: {type: string, format: cidr}, gateway: string}"
    parsed = parse(TEXT.replace("{ranges: false}", f"{{ranges: false}}, spec: {own}"), "p.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    found = resolve(parsed.spec, parsed.document, CONTRACTS)

    assert [str(each) for each in found.findings] == []


def test_a_provider_of_addresses_only_releases_no_templates() -> None:
    text = TEXT.replace("infrastructure:", "x-removed:")
    lines = [line for line in text.splitlines() if "AcmeCluster" not in line]
    lines = [line for line in lines if "AcmeMachine" not in line and "x-removed" not in line]
    found = explain_resolution(provider("\n".join(lines)))

    assert (found["flavors"], found["clusterClasses"]) == ([], [])


def test_addresses_of_a_pool_are_ranges() -> None:
    text = TEXT.replace("{ranges: false}", "{ranges: false}, spec: {addresses: string}")
    parsed = parse(text, "p.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    (finding,) = resolve(parsed.spec, parsed.document, CONTRACTS).findings

    assert finding.id == "field-reserved"


def test_pools_have_a_scope_and_no_templates() -> None:
    """Proves: IP-02, CRD-01."""
    assert crd("AcmeIPPool")["spec"]["scope"] == "Namespaced"
    assert crd("GlobalAcmeIPPool")["spec"]["scope"] == "Cluster"
    assert not any(resource.role.is_template for resource in component("ipam").resources)


def test_pools_move() -> None:
    """What a cluster-scoped owner takes along by its hierarchy would stay at the source too.

    Proves: IP-11, MV-02, MV-04.
    """
    namespaced, whole = (
        crd(kind)["metadata"]["labels"] for kind in ("AcmeIPPool", "GlobalAcmeIPPool")
    )

    assert (HIERARCHY in namespaced, MOVE in namespaced) == (True, False)
    assert (HIERARCHY in whole, MOVE in whole) == (False, True)


def test_samples_of_pools_can_be_used_as_they_are() -> None:
    found: dict[str, Any] = {
        r.kind: sample_spec(r, provider()) for r in component("ipam").resources
    }

    assert found["AcmeIPPool"] == {
        "addresses": ["192.0.2.0/24"],
        "prefix": 24,
        "gateway": "192.0.2.1",
    }
    assert found["GlobalAcmeIPPool"]["site"] == "example"
    assert found["AcmeElsewherePool"] == {}


def test_the_manager_of_pools_answers_claims() -> None:
    """Proves: IP-14, IP-01, RB-04, RB-06, RB-07, RB-10."""
    of = component("ipam")
    found = manager_permissions(provider(), of)

    assert verbs(found, GROUP, "ipaddressclaims") == {"get", "list", "patch", "watch"}
    assert verbs(found, GROUP, "ipaddressclaims/status") == {"patch"}
    assert verbs(found, GROUP, "ipaddressclaims/finalizers") == {"update"}
    assert verbs(found, GROUP, "ipaddresses") == {"create", "delete", "list", "patch", "watch"}
    assert verbs(found, GROUP, "acmeippools/finalizers") == {"update"}
    assert verbs(found, "cluster.x-k8s.io", "clusters") == {"get", "list", "watch"}
    assert verbs(found, "cluster.x-k8s.io", "machines") == set()
    at_home = namespace_permissions(provider(), of)
    assert verbs(at_home, "coordination.k8s.io", "leases") == {"create", "get", "patch", "update"}
    assert aggregate_permissions(of) == ()


def test_machines_that_ask_for_addresses_make_claims() -> None:
    """Proves: IP-12, IP-14."""
    of = component("infrastructure")
    asking = manager_permissions(provider(), of)
    silent = provider(TEXT.replace("addressesFromPools: true", "addresses: true"))

    assert verbs(asking, GROUP, "ipaddressclaims") == {"create", "list", "patch", "watch"}
    assert verbs(asking, GROUP, "ipaddresses") == {"list", "watch"}
    found = manager_permissions(silent, silent.components[0])
    assert verbs(found, GROUP, "ipaddressclaims") == set()


def test_the_pools_of_a_machine_stay() -> None:
    """In templates the admission policy sees to that: dry runs of topologies change them.

    Proves: IP-12, IM-14.
    """
    machine = spec_of(crd("AcmeMachine", "infrastructure"))["properties"]["addressesFromPools"]
    template = spec_of(crd("AcmeMachineTemplate", "infrastructure"))["properties"]["template"]
    inner = template["properties"]["spec"]["properties"]["addressesFromPools"]

    assert [rule["rule"] for rule in machine["x-kubernetes-validations"]] == ["self == oldSelf"]
    assert "x-kubernetes-validations" not in inner
    assert machine["items"]["required"] == ["apiGroup", "kind", "name"]
