"""Unit tests of LibvirtClusterReconciler; they need no API server."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from capsmith_runtime.infrastructure import (
    Deleted,
    Endpoint,
    InfraClusterState,
    ReconcileError,
    TerminalError,
    Waiting,
)
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.faults import Faults

import libvirt
from cluster_api_provider_libvirt._generated.api.libvirt_cluster import LibvirtClusterSpec
from cluster_api_provider_libvirt.controllers.libvirt_cluster import (
    LibvirtClusterReconciler,
    Scope,
)

from .infrastructure import Infrastructure, failure, open_session

OWN = Endpoint("api.example.com", 8443)
TWO_HOSTS = [
    {"name": "a", "uri": "qemu+ssh://a/system"},
    {"name": "b", "uri": "qemu+ssh://b/system"},
]


def _cluster(endpoint: Endpoint | None = None, **fields: Any) -> Scope:
    spec = testing.spec_from(LibvirtClusterSpec, fields)
    return testing.infra_cluster(spec, endpoint=endpoint, session=open_session())


def _reconcile(cluster: Scope) -> InfraClusterState:
    state = LibvirtClusterReconciler().reconcile_normal(cluster)
    assert isinstance(state, InfraClusterState)
    return state


def _delete(**fields: Any) -> Deleted | Waiting:
    spec = testing.spec_from(LibvirtClusterSpec, fields)
    scope = testing.infra_cluster_deletion(spec, session=open_session())
    return LibvirtClusterReconciler().reconcile_delete(scope)


def test_cluster_is_created_once(hosts: Infrastructure) -> None:
    first, again = (_reconcile(_cluster()) for _ in range(2))

    assert first == again
    assert hosts.clusters() == [first.status.pool]
    assert hosts.networks() == [first.status.network]
    assert [each.name for each in first.failure_domains] == ["local"]


def test_the_second_address_is_the_endpoint_and_no_lease(hosts: Infrastructure) -> None:
    state = _reconcile(_cluster(networkCIDR="10.20.0.0/24"))

    assert state.control_plane_endpoint == Endpoint("10.20.0.2", 6443)
    (network,) = hosts.host.listAllNetworks()
    assert 'address="10.20.0.1"' in network.XMLDesc().replace("'", '"')
    assert 'start="10.20.0.10"' in network.XMLDesc().replace("'", '"')


def test_machines_have_a_network_as_soon_as_they_are_connected(hosts: Infrastructure) -> None:
    _reconcile(_cluster())

    (network,) = hosts.host.listAllNetworks()
    bridge = ElementTree.fromstring(network.XMLDesc()).find("bridge")
    assert bridge is not None
    assert bridge.get("stp") == "off"


def test_an_endpoint_of_the_user_is_used(hosts: Infrastructure) -> None:
    assert _reconcile(_cluster(OWN)).control_plane_endpoint == OWN


def test_a_network_that_exists_is_used_and_left(hosts: Infrastructure) -> None:
    waiting = LibvirtClusterReconciler().reconcile_normal(_cluster(OWN, network="lab"))
    hosts.host.networkDefineXML("<network><name>lab</name></network>")
    state = _reconcile(_cluster(OWN, network="lab"))

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "NetworkNotFound"
    assert state.status.network == "lab"
    assert _delete(network="lab") == Deleted()
    assert (hosts.networks(), hosts.clusters()) == (["lab"], [])


def test_hosts_are_failure_domains(hosts: Infrastructure) -> None:
    hosts.host.networkDefineXML("<network><name>lab</name></network>")
    state = _reconcile(_cluster(OWN, network="lab", hosts=TWO_HOSTS))

    assert [each.name for each in state.failure_domains] == ["a", "b"]


def test_what_was_stopped_is_started(hosts: Infrastructure) -> None:
    state = _reconcile(_cluster())
    hosts.host.storagePoolLookupByName(state.status.pool).destroy()
    hosts.host.networkLookupByName(state.status.network).destroy()

    _reconcile(_cluster())

    assert hosts.host.storagePoolLookupByName(state.status.pool).isActive()
    assert hosts.host.networkLookupByName(state.status.network).isActive()


@pytest.mark.parametrize(
    ("owner", "call"),
    [
        (libvirt.virStoragePool, "create"),
        (libvirt.virConnect, "networkDefineXML"),
        (libvirt.virNetwork, "create"),
    ],
)
def test_an_interrupted_creation_is_completed(
    hosts: Infrastructure, monkeypatch: pytest.MonkeyPatch, owner: type, call: str
) -> None:
    def refuse(*_: Any) -> None:
        raise failure("not now")

    with monkeypatch.context() as patch:
        patch.setattr(owner, call, refuse)
        with pytest.raises(ReconcileError, match="not now"):
            _reconcile(_cluster())
    state = _reconcile(_cluster())

    assert hosts.clusters() == [state.status.pool]
    assert hosts.networks() == [state.status.network]


@pytest.mark.parametrize("cidr", ["fd00::/64", "10.0.0.0/30"])
def test_a_network_that_cannot_hold_machines_is_a_terminal_error(
    hosts: Infrastructure, cidr: str
) -> None:
    with pytest.raises(TerminalError, match=cidr):
        _reconcile(_cluster(networkCIDR=cidr))


def test_nothing_is_left_of_a_cluster(hosts: Infrastructure) -> None:
    _reconcile(_cluster())

    assert [_delete(), _delete()] == [Deleted(), Deleted()]
    assert (hosts.networks(), hosts.clusters()) == ([], [])


@pytest.mark.parametrize(
    ("owner", "call"),
    [
        (libvirt.virNetwork, "undefine"),
        (libvirt.virStoragePool, "delete"),
        (libvirt.virStoragePool, "undefine"),
    ],
)
def test_an_interrupted_deletion_is_completed(
    hosts: Infrastructure, monkeypatch: pytest.MonkeyPatch, owner: type, call: str
) -> None:
    def refuse(*_: Any) -> None:
        raise failure("not now")

    _reconcile(_cluster())
    with monkeypatch.context() as patch:
        patch.setattr(owner, call, refuse)
        with pytest.raises(ReconcileError, match="not now"):
            _delete()

    assert _delete() == Deleted()
    assert (hosts.networks(), hosts.clusters()) == ([], [])


def test_a_host_that_does_not_answer_is_reported(hosts: Infrastructure) -> None:
    hosts.simulate(Faults(error=1.0))

    with pytest.raises(ReconcileError, match="timed out") as raised:
        _reconcile(_cluster())

    assert raised.value.reason == "LibvirtError"
