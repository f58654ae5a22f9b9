"""capsmith conformance without a cluster: which providers it starts, and what it checks of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.clusters.processes.errors import RequestError
from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.commands.conformance import select_groups
from capsmith.commands.conformance_release import CheckedProvider, ConformanceRequest, read_provider
from capsmith.contract.load import load_rules
from capsmith.errors import InvalidOption, UnreadableInput
from capsmith.judge.running.checks import (
    ADDRESSES,
    INFRASTRUCTURE,
    WHOLE_CLUSTER,
    WITHOUT_MACHINE_POOLS,
)
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.ipam_session import IpamObjects, IpamSession, select_ipam_objects
from capsmith.judge.running.model import CheckOutcome, ConformanceCheck, Selection, Timing
from capsmith.judge.running.objects import select_provider_objects
from capsmith.judge.running.run import run_checks, skip_checks
from capsmith.resources import schemas

_METADATA = """\
apiVersion: clusterctl.cluster.x-k8s.io/v1alpha3
kind: Metadata
releaseSeries:
- {major: 0, minor: 1, contract: v1beta2}
"""
_RULES = load_rules(schemas())
_POOL = {"addresses": {"type": "array", "items": {"type": "string"}}, "prefix": {"type": "integer"}}


def _crd(group: str, kind: str, spec: dict[str, Any] | None = None) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    properties = {"spec": {"type": "object", "properties": spec or {}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": properties}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}.cluster.x-k8s.io",
            "labels": {"cluster.x-k8s.io/v1beta2": "v1"},
        },
        "spec": {
            "group": f"{group}.cluster.x-k8s.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def _release(folder: Path, *types: str, crds: tuple[dict[str, Any], ...] = ()) -> Path:
    folder.mkdir()
    (folder / "metadata.yaml").write_text(_METADATA)
    for type in types:
        labels = {"cluster.x-k8s.io/provider": f"{type}-box"}
        metadata = {"name": f"box-{type}-system", "labels": labels}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        own = [crd for crd in crds if crd["spec"]["group"].startswith(type)]
        text = yaml.safe_dump_all([namespace, *own])
        (folder / f"{type}-components.yaml").write_text(text)
    return folder


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return _release(
        tmp_path / "out", "infrastructure", "bootstrap", "runtime-extension", crds=_CRDS
    )


_CRDS = (
    _crd("infrastructure", "BoxCluster", {"controlPlaneEndpoint": {"type": "object"}}),
    _crd("infrastructure", "BoxFleet", {"providerIDList": {"type": "array"}}),
    _crd("bootstrap", "BoxConfig"),
)


def _read(folder: Path, *managers: str, others: tuple[Path, ...] = ()) -> CheckedProvider:
    return read_provider(folder, ConformanceRequest("v1.14", managers=managers, others=others))


def _checked(provider: CheckedProvider) -> list[str]:
    return [each.type for each in provider.components]


def test_one_command_is_that_of_all_providers_with_checks(release: Path) -> None:
    provider = _read(release, "run it")
    assert provider.commands == dict.fromkeys(["infrastructure", "bootstrap"], ("run", "it"))
    assert _checked(provider) == ["infrastructure", "bootstrap"]
    assert provider.label == "infrastructure-box, bootstrap-box"


def test_a_command_of_a_type(release: Path) -> None:
    provider = _read(release, "run", "bootstrap=run other")
    assert provider.commands == {"infrastructure": ("run",), "bootstrap": ("run", "other")}
    provider = _read(release, "bootstrap=run other")
    assert _checked(provider) == ["bootstrap"]
    assert "BoxCluster" not in provider.roles


def test_a_command_may_have_an_equals_sign(release: Path) -> None:
    assert _read(release, "run --a=b").commands["bootstrap"] == ("run", "--a=b")


def test_another_release_is_started_and_not_checked(release: Path, tmp_path: Path) -> None:
    other = _release(tmp_path / "other", "control-plane")
    provider = _read(release, "run", "control-plane=plane", others=(other,))
    assert _checked(provider) == ["infrastructure", "bootstrap"]
    types = [each.type for each in provider.started]
    assert types == ["infrastructure", "bootstrap", "control-plane"]


@pytest.mark.parametrize(
    ("managers", "message"),
    [
        (("ipam=run",), "which has no components file"),
        (("run", "again"), "given more than once"),
        (("bootstrap=run", "bootstrap=again"), "given more than once"),
        (("runtime-extension=run",), "No --manager belongs to a provider"),
        (("run 'again",), "No closing quotation"),
    ],
)
def test_commands_that_mean_nothing(release: Path, managers: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidOption, match=message):
        _read(release, *managers)


def test_two_releases_with_a_provider_of_one_type(release: Path, tmp_path: Path) -> None:
    other = _release(tmp_path / "other", "bootstrap")
    with pytest.raises(InvalidOption, match="Several releases have a provider of type bootstrap"):
        _read(release, "run", others=(other,))


def test_a_pool_is_known_by_its_field(release: Path) -> None:
    roles = _read(release, "run").roles
    assert roles["BoxFleet"] == "InfraMachinePool"
    assert roles["BoxCluster"] == "InfraCluster"


@pytest.mark.parametrize(
    ("roles", "checks"),
    [
        (("InfraCluster", "InfraMachine"), (WITHOUT_MACHINE_POOLS,)),
        (("InfraCluster", "InfraMachine", "InfraMachinePool"), (INFRASTRUCTURE,)),
        (("BootstrapConfig", "ControlPlane"), (WHOLE_CLUSTER,)),
        (("GlobalIPPool",), (ADDRESSES,)),
        (("none",), (WITHOUT_MACHINE_POOLS,)),
        (
            ("InfraMachine", "BootstrapConfig", "ControlPlane", "IPPool"),
            (WITHOUT_MACHINE_POOLS, WHOLE_CLUSTER, ADDRESSES),
        ),
    ],
)
def test_each_role_has_its_checks(roles: tuple[str, ...], checks: tuple[object, ...]) -> None:
    found = select_groups({f"Kind{number}": role for number, role in enumerate(roles)})
    assert tuple(part.checks for part in found) == checks


@pytest.mark.parametrize(
    ("role", "others"), [("BootstrapConfig", "control-plane-"), ("ControlPlane", "bootstrap-")]
)
def test_providers_that_a_cluster_needs_are_not_checked(role: str, others: str) -> None:
    (part,) = select_groups({"Kind": role})
    names = [check.name for check in part.checks]
    assert "whole-deletion" in names
    assert names == [check.name for check in WHOLE_CLUSTER if not check.name.startswith(others)]


def test_only_providers_with_pools_have_their_checks() -> None:
    names = {check.name for check in WITHOUT_MACHINE_POOLS}
    assert not any(name.startswith("pool-") for name in names)
    left_out = {check.name for check in INFRASTRUCTURE} - names
    assert left_out
    assert all(name.startswith("pool-") for name in left_out)


def test_checks_have_one_name_and_known_rules() -> None:
    checks: list[ConformanceCheck[Any]] = [*INFRASTRUCTURE, *WHOLE_CLUSTER, *ADDRESSES]
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    unknown = {rule for check in checks for rule in check.rules} - _RULES.keys()
    assert unknown == set()


def test_machine_pools_are_no_objects_of_all_clusters() -> None:
    group = "infrastructure.cluster.x-k8s.io/v1"
    kinds = ("BoxCluster", "BoxMachineTemplate", "BoxFleet", "BoxFleet")
    documents = [
        {"apiVersion": group, "kind": kind, "metadata": {"name": kind}, "spec": {"template": {}}}
        for kind in kinds
    ]
    roles = dict(
        zip(kinds, ["InfraCluster", "InfraMachineTemplate", *["InfraMachinePool"] * 2], strict=True)
    )
    objects = select_provider_objects(documents, roles)
    assert objects.pool_kinds == ["BoxFleet"]
    assert objects.others("main", "ns") == []
    assert objects.pool("BoxFleet", "main", "ns", "one")["metadata"]["name"] == "one"


def test_a_pool_of_addresses_is_made_where_its_fields_are_known() -> None:
    crd = _crd("ipam", "BoxIPPool", {**_POOL, "gateway": {"type": "string"}})
    pools = select_ipam_objects([], [crd], {"BoxIPPool": "IPPool"})
    made = pools.pool("BoxIPPool", "ns")
    assert made["spec"]["gateway"] == "198.51.100.1"
    assert made["spec"]["addresses"] == ["198.51.100.10-198.51.100.13"]
    assert (pools.names, pools.group("BoxIPPool")) == (["BoxIPPool"], "ipam.cluster.x-k8s.io")


def test_a_given_pool_of_addresses_prevails() -> None:
    crd = _crd("ipam", "BoxIPPool", _POOL)
    given = {"apiVersion": "ipam.cluster.x-k8s.io/v1", "kind": "BoxIPPool", "spec": {"prefix": 8}}
    pools = select_ipam_objects([given], [crd], {"BoxIPPool": "IPPool"})
    assert pools.pool("BoxIPPool", "ns")["spec"] == {"prefix": 8}


def test_a_pool_of_addresses_with_other_fields_has_to_be_given() -> None:
    crd = _crd("ipam", "BoxIPPool", {"cidr": {"type": "string"}})
    with pytest.raises(UnreadableInput) as caught:
        select_ipam_objects([], [crd], {"BoxIPPool": "IPPool"})
    assert caught.value.finding.id == "conformance-objects"


def test_checks_of_a_part_without_objects_are_skipped() -> None:
    seen: list[object] = []
    selection = Selection(frozenset({"restart", "move"}))
    results = skip_checks(INFRASTRUCTURE, _RULES, selection, "there is no template", seen.append)
    assert [each.name for each in results] == ["restart", "move"]
    assert {each.outcome for each in results} == {CheckOutcome.SKIPPED}
    assert seen == list(results)


def test_a_management_cluster_that_does_not_answer(tmp_path: Path) -> None:
    client = KubeClient("https://127.0.0.1:1", Credentials(Pki(tmp_path).ca))
    core = CoreObjects("v1beta2", "conformance-box", "v1.36.0")
    session = IpamSession(client, core, "v1beta2", Timing(), IpamObjects(()))
    with pytest.raises(RequestError, match="the run cannot start") as caught:
        run_checks(session, ADDRESSES, _RULES)
    assert (caught.value.exit_code, caught.value.finding.id) == (2, "request-failed")
    session.wait_removed()  # returns at once: the namespace is not that of this run
