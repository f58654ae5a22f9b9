"""References between kinds: those of the contract, of the provider, and what is not declared."""

from __future__ import annotations

from capsmith.commands.load import load
from capsmith.output.relations import (
    Relation,
    describe_kind,
    draw_relations,
    format_kind,
    list_relations,
)
from capsmith.provider.model import Provider
from tests.checkout import ROOT


def example(name: str) -> Provider:
    provider = load(ROOT / "examples" / name / "provider.yaml").provider
    assert provider is not None
    return provider


def find(provider: Provider, source: str, target: str) -> Relation | None:
    found = (each for each in list_relations(provider) if each[:2] == (source, target))
    return next(found, None)


def test_core_refers_to_the_kinds_of_roles() -> None:
    acme = example("acme")
    assert find(acme, "Machine", "AcmeMachine") == (
        "Machine",
        "AcmeMachine",
        ("spec.infrastructureRef",),
        True,
    )
    template = find(acme, "ClusterClass", "AcmeMachineTemplate")
    assert template is not None
    assert "spec.controlPlane.machineInfrastructure.templateRef" in template.fields
    assert find(acme, "Cluster", "AcmeMachineTemplate") == (
        "Cluster",
        "AcmeMachineTemplate",
        (),
        True,
    )


def test_paths_are_those_of_the_contract() -> None:
    old = find(example("homelab-v1beta1"), "KubeadmControlPlane", "HomelabMachineTemplate")
    assert old is not None
    assert old.fields == ("spec.machineTemplate.infrastructureRef",)


def test_a_control_plane_of_the_provider_takes_the_place_of_kubeadms() -> None:
    complete = example("complete")
    assert find(complete, "SkiffControlPlane", "SkiffMachineTemplate") is not None
    assert find(complete, "KubeadmControlPlane", "SkiffMachineTemplate") is None
    owned = find(complete, "SkiffControlPlane", "Machine")
    assert owned is not None
    assert owned.is_owner


def test_credentials_are_followed_to_the_secret() -> None:
    acme = example("acme")
    assert find(acme, "AcmeCluster", "AcmeIdentity") is not None
    assert find(acme, "AcmeIdentity", "Secret") is not None


def test_watched_fields_are_references() -> None:
    everything = example("everything")
    by_field = [
        each for each in list_relations(everything) if each.fields == ("spec.userDataRef.name",)
    ]
    assert [each.target for each in by_field] == ["Secret"]


def test_pools_own_their_machines() -> None:
    pools = example("pools")
    pool = next(each for each in pools.resources if each.machine_kind is not None)
    owned = find(pools, pool.kind, str(pool.machine_kind))
    assert owned is not None
    assert owned.is_owner


def test_a_kind_is_described_in_lines() -> None:
    acme = example("acme")
    kind = next(each for each in acme.resources if each.kind == "AcmeMachine")
    assert format_kind(describe_kind(acme, kind)) == [
        "AcmeMachine  InfraMachine of infrastructure-acme, namespaced",
        "  AcmeMachine is the infrastructure of one machine.",
        "  API versions of acmemachines.infrastructure.cluster.x-k8s.io",
        "    v1alpha1: contract v1beta2, stored",
        "  Referred to by",
        "    Machine: spec.infrastructureRef (its owner)",
        "    AcmeMachineTemplate: spec.template",
    ]


def test_a_diagram_has_roles_versions_contracts_and_references() -> None:
    lines = list(draw_relations(example("two-contracts")))
    versions = "v1alpha1: contract v1beta1<br>v1beta1: contract v1beta2"
    assert f'  HarbourMachine["HarbourMachine<br>InfraMachine<br>{versions}"]:::own' in lines
    assert '  Machine ==>|"spec.infrastructureRef"| HarbourMachine' in lines
    assert '  HarbourCluster -.->|"spec.identityRef"| HarbourIdentity' in lines
