"""Unit tests of LibvirtMachineReconciler; they need no API server."""

from __future__ import annotations

import io
import json
from ipaddress import IPv4Network
from typing import Any
from xml.etree import ElementTree

import pytest
from capsmith_runtime.infrastructure import (
    BootstrapData,
    Deleted,
    Endpoint,
    InfraClusterState,
    InfraClusterView,
    InfraMachineScope,
    InfraMachineState,
    ReconcileError,
    TerminalError,
    Terminated,
    Waiting,
)
from capsmith_runtime.testing import infrastructure as testing

import libvirt
from cluster_api_provider_libvirt import storage
from cluster_api_provider_libvirt._generated.api.libvirt_cluster import LibvirtClusterSpec
from cluster_api_provider_libvirt._generated.api.libvirt_machine import LibvirtMachineSpec
from cluster_api_provider_libvirt.controllers.libvirt_cluster import LibvirtClusterReconciler
from cluster_api_provider_libvirt.controllers.libvirt_machine import (
    LibvirtMachineReconciler,
    Scope,
)
from cluster_api_provider_libvirt.network import AddressPlan, ensure_network
from pycdlib import PyCdlib

from .infrastructure import IMAGE, Infrastructure, failure, open_session

CLUSTER: dict[str, Any] = {}
NETWORK, ENDPOINT = "lan", Endpoint("10.130.0.2", 6443)
MACHINE = {"image": IMAGE, "domainType": "qemu"}
CONTAINER = {"domainType": "lxc", "init": "/sbin/first", "memoryMiB": 700}
LONGEST_LOOP = 63
"""Characters of a path that libvirt can mount as a loop device."""
USER_DATA = b"#cloud-config\n{}"


@pytest.fixture
def view(hosts: Infrastructure) -> InfraClusterView:
    """A cluster that is provisioned."""
    spec = testing.spec_from(LibvirtClusterSpec, CLUSTER)
    state = LibvirtClusterReconciler().reconcile_normal(
        testing.infra_cluster(spec, session=open_session())
    )
    assert isinstance(state, InfraClusterState)
    endpoint = state.control_plane_endpoint
    return testing.infra_cluster_view(CLUSTER, endpoint=endpoint, status=state.status)


@pytest.fixture
def two_hosts(hosts: Infrastructure) -> InfraClusterView:
    """A cluster on a network that two hosts have; the test driver is both."""
    spec = {
        "hosts": [{"name": name, "uri": f"test://{name}"} for name in ("first", "second")],
        "network": NETWORK,
    }
    ensure_network(hosts.host, NETWORK, AddressPlan(IPv4Network("10.130.0.0/24")))
    state = LibvirtClusterReconciler().reconcile_normal(
        testing.infra_cluster(
            testing.spec_from(LibvirtClusterSpec, spec), endpoint=ENDPOINT, session=open_session()
        )
    )
    assert isinstance(state, InfraClusterState)
    return testing.infra_cluster_view(spec, endpoint=ENDPOINT, status=state.status)


def _take_away(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no connection to a host be opened from now on."""
    open_host = libvirt.open

    def refuse(asked: str) -> libvirt.virConnect:
        if asked == uri:
            raise failure("no route to host")
        return open_host(asked)

    monkeypatch.setattr(libvirt, "open", refuse)
    open_session().close()
    open_session.cache_clear()


def _machine(view: InfraClusterView, *, spec: dict[str, Any] | None = None, **more: Any) -> Scope:
    typed = testing.spec_from(LibvirtMachineSpec, {**MACHINE, **(spec or {})})
    return testing.infra_machine(typed, infra_cluster=view, session=open_session(), **more)


def _reconcile(machine: Scope) -> InfraMachineState:
    state = LibvirtMachineReconciler().reconcile_normal(machine)
    assert isinstance(state, InfraMachineState)
    return state


def _delete(view: InfraClusterView) -> Deleted | Waiting:
    spec = testing.spec_from(LibvirtMachineSpec, MACHINE)
    scope = testing.infra_machine_deletion(spec, infra_cluster=view, session=open_session())
    return LibvirtMachineReconciler().reconcile_delete(scope)


def _domain(hosts: Infrastructure) -> libvirt.virDomain:
    (domain,) = hosts.host.listAllDomains()
    return domain


def _xml(hosts: Infrastructure) -> ElementTree.Element:
    return ElementTree.fromstring(_domain(hosts).XMLDesc())


def test_machine_is_created_once(hosts: Infrastructure, view: InfraClusterView) -> None:
    machine = _machine(view)

    first, again = (_reconcile(machine) for _ in range(2))

    assert first == again
    (uuid,) = hosts.servers()
    assert first.provider_id == f"libvirt:///local/{uuid}"
    assert [each.type for each in first.addresses] == ["Hostname", "InternalIP"]
    assert first.addresses[1].address.startswith("10.130.")
    assert first.failure_domain == "local"
    assert first.status.domain_state == "running"
    assert [each.reason for each in machine.events.recorded] == ["DomainCreated"]


def test_the_domain_is_as_specified(hosts: Infrastructure, view: InfraClusterView) -> None:
    boot = {"kernel": "/boot/vmlinuz", "initrd": "/boot/initrd", "commandLine": "quiet"}
    spec = {"cpus": 3, "memoryMiB": 700, "diskGiB": 9, "directBoot": boot}
    state = _reconcile(_machine(view, spec=spec))

    root = _xml(hosts)
    assert root.findtext("vcpu") == "3"
    assert root.findtext("memory") == str(700 * 1024)
    processor = root.find("cpu")
    assert processor is not None
    assert processor.get("mode") == "maximum"
    found = [root.findtext(f"os/{tag}") for tag in ("kernel", "initrd", "cmdline")]
    assert found == ["/boot/vmlinuz", "/boot/initrd", "quiet"]
    pool = hosts.host.storagePoolLookupByName(view.short_id)
    disk = pool.storageVolLookupByName(f"{state.status.domain}.qcow2")
    assert disk.info()[1] == 9 * 1024**3


def test_a_disk_is_not_smaller_than_its_image(
    hosts: Infrastructure, view: InfraClusterView
) -> None:
    state = _reconcile(_machine(view, spec={"diskGiB": 1}))

    pool = hosts.host.storagePoolLookupByName(view.short_id)
    disk = pool.storageVolLookupByName(f"{state.status.domain}.qcow2")
    assert disk.info()[1] == 2 * 1024**3


def test_cloud_init_gets_the_bootstrap_data(hosts: Infrastructure, view: InfraClusterView) -> None:
    state = _reconcile(_machine(view, bootstrap=USER_DATA))

    (content,) = hosts.contents.values()
    image = PyCdlib()
    image.open_fp(io.BytesIO(content))
    found = {}
    for name in ("user-data", "meta-data"):
        read = io.BytesIO()
        image.get_file_from_iso_fp(read, rr_path=f"/{name}")
        found[name] = read.getvalue()
    assert image.pvd.volume_identifier.strip() == b"cidata"
    assert found["user-data"] == USER_DATA
    meta_data = json.loads(found["meta-data"])
    assert meta_data["provider_id"] == state.provider_id
    assert meta_data["local-hostname"] == state.addresses[0].address
    assert meta_data["control_plane_host"] == ENDPOINT.host


def test_a_container_has_a_copy_of_its_image(hosts: Infrastructure, view: InfraClusterView) -> None:
    state = _reconcile(_machine(view, spec=CONTAINER, bootstrap=USER_DATA))

    root = _xml(hosts)
    assert root.get("type") == "lxc"
    assert root.findtext("os/init") == "/sbin/first"
    assert root.findtext("memory") == str(700 * 1024)
    pool = hosts.host.storagePoolLookupByName(view.short_id)
    (copy,) = pool.listAllVolumes()
    sources = [dict(each.attrib) for each in root.findall("devices/filesystem/source")]
    assert sources[0] == {"file": copy.path()}
    assert len(copy.path()) <= LONGEST_LOOP
    assert {path.rpartition("/")[2] for path in hosts.contents} == {"user-data", "meta-data"}
    assert {path.rpartition("/")[0] for path in hosts.contents} == {sources[1]["dir"]}
    assert USER_DATA in hosts.contents.values()
    assert state.status.console_log is None


def test_a_container_does_not_start_with_half_a_copy(
    hosts: Infrastructure, view: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_volume: libvirt.virStorageVol) -> None:
        raise failure("the volume is still being allocated")

    with monkeypatch.context() as patch:
        patch.setattr(storage, "check_complete", refuse)
        with pytest.raises(ReconcileError, match="still being allocated"):
            _reconcile(_machine(view, spec=CONTAINER))
        assert hosts.servers() == []
    assert _reconcile(_machine(view, spec=CONTAINER)).status.domain_state == "running"


def test_nothing_is_left_of_a_container(hosts: Infrastructure, view: InfraClusterView) -> None:
    _reconcile(_machine(view, spec=CONTAINER))

    assert [_delete(view), _delete(view)] == [Deleted(), Deleted()]

    assert (hosts.servers(), hosts.volumes()) == ([], [])
    assert hosts.clusters() == [view.short_id]


def test_a_deletion_does_not_wait_for_other_hosts(
    hosts: Infrastructure, two_hosts: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    _reconcile(_machine(two_hosts, failure_domain="second"))
    _take_away("test://first", monkeypatch)

    assert _delete(two_hosts) == Deleted()

    assert (hosts.servers(), hosts.volumes()) == ([], [])


def test_a_deletion_waits_for_a_host_that_may_have_the_machine(
    two_hosts: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    _take_away("test://first", monkeypatch)

    with pytest.raises(ReconcileError, match="first: no route to host"):
        _delete(two_hosts)


def test_the_address_of_the_api_server_is_not_one_of_a_machine(
    two_hosts: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"vnet0": {"addrs": [{"addr": ENDPOINT.host}, {"addr": "10.130.0.10"}]}}
    monkeypatch.setattr(libvirt.virDomain, "interfaceAddresses", lambda *_: found)

    state = _reconcile(_machine(two_hosts))

    assert [each.address for each in state.addresses[1:]] == ["10.130.0.10"]


def test_a_machine_does_not_wait_for_addresses_that_no_host_sees(
    two_hosts: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libvirt.virDomain, "interfaceAddresses", lambda *_: {})

    state = _reconcile(_machine(two_hosts))

    assert state.ready
    assert [each.type for each in state.addresses] == ["Hostname"]


def test_other_bootstrap_data_are_a_terminal_error(
    hosts: Infrastructure, view: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = BootstrapData(b"{}", "ignition")
    monkeypatch.setattr(InfraMachineScope, "bootstrap_data", lambda _: data)

    with pytest.raises(TerminalError, match="ignition"):
        _reconcile(_machine(view))

    assert (hosts.servers(), hosts.volumes()) == ([], [])


@pytest.mark.parametrize(
    ("owner", "call"),
    [
        (storage, "upload"),
        (libvirt.virConnect, "defineXML"),
        (libvirt.virDomain, "create"),
    ],
)
def test_an_interrupted_creation_is_completed(
    hosts: Infrastructure,
    view: InfraClusterView,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    call: str,
) -> None:
    def refuse(*_: Any) -> None:
        raise failure("not now")

    with monkeypatch.context() as patch:
        patch.setattr(owner, call, refuse)
        with pytest.raises(ReconcileError, match="not now"):
            _reconcile(_machine(view))
    state = _reconcile(_machine(view))

    assert state.status.domain_state == "running"
    assert len(hosts.contents) == len(hosts.servers()) == 1


def test_a_missing_image_is_waited_for(hosts: Infrastructure, view: InfraClusterView) -> None:
    with pytest.raises(ReconcileError, match="no volume other.qcow2") as raised:
        _reconcile(_machine(view, spec={"image": "other.qcow2"}))

    assert raised.value.reason == "ImageNotFound"
    assert not isinstance(raised.value, TerminalError)


def test_a_machine_without_address_is_waited_for(
    hosts: Infrastructure, view: InfraClusterView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libvirt.virDomain, "interfaceAddresses", lambda *_: {})

    waiting = LibvirtMachineReconciler().reconcile_normal(_machine(view))

    assert isinstance(waiting, Waiting)
    assert waiting.reason == "WaitingForAddress"
    assert waiting.provider_id is not None
    assert waiting.status.domain_state == "running"


def test_a_domain_that_stopped_is_not_ready(hosts: Infrastructure, view: InfraClusterView) -> None:
    state = _reconcile(_machine(view))
    _domain(hosts).destroy()

    known = _machine(view, provider_id=state.provider_id, is_provisioned=True)
    stopped = _reconcile(known)

    assert (stopped.ready, stopped.reason) == (False, "DomainNotRunning")
    assert stopped.message == "the domain is shut off"


def test_a_domain_that_was_deleted_is_not_created_again(
    hosts: Infrastructure, view: InfraClusterView
) -> None:
    state = _reconcile(_machine(view))
    hosts.remove_server(hosts.servers()[0])

    known = _machine(view, provider_id=state.provider_id, is_provisioned=True)
    result = LibvirtMachineReconciler().reconcile_normal(known)

    assert isinstance(result, Terminated)
    assert result.reason == "DomainNotFound"
    assert hosts.servers() == []


def test_nothing_is_left_of_a_machine(hosts: Infrastructure, view: InfraClusterView) -> None:
    _reconcile(_machine(view))
    _reconcile(_machine(view, name="another"))

    assert [_delete(view), _delete(view)] == [Deleted(), Deleted()]

    assert len(hosts.servers()) == 1
    assert len(hosts.volumes()) == 2


def test_a_domain_that_stopped_by_itself_is_deleted(
    hosts: Infrastructure, view: InfraClusterView
) -> None:
    _reconcile(_machine(view))
    _domain(hosts).destroy()

    assert _delete(view) == Deleted()
    assert (hosts.servers(), hosts.volumes()) == ([], [])


def test_volumes_of_a_pool_that_was_stopped_are_deleted(
    hosts: Infrastructure, view: InfraClusterView
) -> None:
    _reconcile(_machine(view))
    pool = hosts.host.storagePoolLookupByName(view.short_id)
    pool.destroy()

    assert _delete(view) == Deleted()

    assert pool.isActive()
    assert hosts.volumes() == []


def test_a_machine_is_on_the_host_of_its_failure_domain(hosts: Infrastructure) -> None:
    two = {"network": "default", "hosts": [{"name": x, "uri": x} for x in ("a", "b")]}
    view = testing.infra_cluster_view(two)
    with pytest.raises(ReconcileError, match="no host c"):
        _reconcile(_machine(view, failure_domain="c"))


def test_the_capacity_of_a_template(view: InfraClusterView) -> None:
    spec = testing.spec_from(LibvirtMachineSpec, {**MACHINE, "cpus": 4, "memoryMiB": 8192})
    template = testing.infra_machine_template(spec, infra_cluster=view, session=open_session())

    capacity = LibvirtMachineReconciler().capacity(template)

    assert capacity.resources == {"cpu": "4", "memory": "8192Mi"}
