"""Domains of machines."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith_runtime.infrastructure import (
    Address,
    Deleted,
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
    InfraMachineTemplateScope,
    MachineCapacity,
    ReconcileError,
    TerminalError,
    Terminated,
    Waiting,
)

import libvirt

from .._generated.api.libvirt_cluster import (
    LibvirtClusterSpec,
    LibvirtClusterSpecHosts,
    LibvirtClusterStatus,
)
from .._generated.api.libvirt_machine import LibvirtMachineSpec, LibvirtMachineStatus
from ..cloud_init import seed_files, seed_image
from ..connections import HostSessions, reported_errors
from ..domains import (
    CONTAINER,
    Parts,
    addresses_of,
    delete_domain,
    domain_xml,
    find_domain,
    provider_id,
    start_domain,
    state_of,
    uuid_of,
)
from ..storage import (
    delete_pool,
    delete_volumes,
    ensure_content,
    ensure_copy,
    ensure_disk,
    ensure_pool,
    find_pool,
    find_volume,
    name_briefly,
)

POLL_SECONDS = 5.0
FORMAT = "cloud-config"

Scope = InfraMachineScope[LibvirtMachineSpec]
DeleteScope = InfraMachineDeleteScope[LibvirtMachineSpec]


class LibvirtMachineReconciler(InfraMachineReconciler[LibvirtMachineSpec]):
    """Reconcile a domain."""

    session_factory = HostSessions

    def reconcile_normal(self, machine: Scope) -> InfraMachineState | Waiting | Terminated:
        """Look up the domain, create it if it never existed, and return its state."""
        place = _place(machine)
        id = provider_id(place.name, uuid_of(machine.external_id))
        with reported_errors():
            host = machine.session(HostSessions).connect(place.uri)
            domain = find_domain(host, uuid_of(machine.external_id))
            if domain is None and machine.provider_id is not None:
                # libvirt lists a domain from the moment of its creation: this one was deleted.
                return Terminated("DomainNotFound", f"{machine.provider_id} no longer exists")
            if domain is None:
                domain = _create(host, machine, id)
                machine.events.normal("DomainCreated", f"{domain.UUIDString()} on {place.name}")
            if not machine.is_provisioned:
                start_domain(domain)
            return _state(machine, place, domain, id)

    def reconcile_delete(self, machine: DeleteScope) -> Deleted | Waiting:
        """Delete the domain and its volumes, on whichever host they are.

        A machine is on one host only: once it is deleted there, it does not wait for hosts that
        cannot be reached.
        """
        hosts, failures = machine.session(HostSessions), []
        for each in machine.require_infra_cluster().spec(LibvirtClusterSpec).hosts:
            try:
                if _delete(hosts.connect(each.uri), machine):
                    message = f"{uuid_of(machine.external_id)} on {each.name}"
                    machine.events.normal("DomainDeleted", message)
                    return Deleted()
            except libvirt.libvirtError as error:
                failures.append(f"{each.name}: {error}")
        if failures:
            raise ReconcileError("LibvirtError", "; ".join(failures))
        return Deleted()

    def capacity(self, template: InfraMachineTemplateScope[LibvirtMachineSpec]) -> MachineCapacity:
        """Return what the template says."""
        spec = template.spec
        resources = {"cpu": str(spec.cpus), "memory": f"{spec.memory_mib}Mi"}
        return MachineCapacity(resources=resources, operating_system="linux")


def _place(machine: Scope) -> LibvirtClusterSpecHosts:
    """Return the host of a machine, which is the same at each call."""
    hosts = machine.require_infra_cluster().spec(LibvirtClusterSpec).hosts
    recorded = machine.provider_id.split("/")[3] if machine.provider_id else None
    chosen = int(machine.short_id, 36) % len(hosts)
    wanted = recorded or machine.failure_domain or hosts[chosen].name
    for each in hosts:
        if each.name == wanted:
            return each
    raise ReconcileError("HostNotFound", f"the LibvirtCluster has no host {wanted}")


def _create(host: libvirt.virConnect, machine: Scope, id: str) -> libvirt.virDomain:
    """Define the domain after everything that it is made of."""
    cluster = machine.require_infra_cluster()
    network = cluster.status(LibvirtClusterStatus).network
    pool = find_pool(host, cluster.short_id)
    if pool is None or network is None:
        raise ReconcileError("NoStoragePool", "the LibvirtCluster has no storage pool yet")
    disk, seed = _ensure_storage(host, machine, pool, id)
    parts = Parts(
        uuid=uuid_of(machine.external_id),
        name=machine.short_id,
        title=f"{machine.namespace}/{machine.name}",
        network=network,
        disk=disk,
        seed=seed,
        console=f"{disk.rpartition('/')[0]}/{_console(machine)}",
    )
    return host.defineXML(domain_xml(machine.spec, parts))


def _delete(host: libvirt.virConnect, machine: DeleteScope) -> bool:
    """Delete what a host has of a machine, and return whether it had the domain."""
    domain = find_domain(host, uuid_of(machine.external_id))
    if domain is not None:
        delete_domain(domain)
    seed = find_pool(host, _seed(machine.short_id))
    if seed is not None:
        delete_volumes(seed, "")
        delete_pool(host, _seed(machine.short_id))
    pool = find_pool(host, machine.require_infra_cluster().short_id)
    if pool is not None:
        delete_volumes(pool, name_briefly(machine.short_id))
    return domain is not None


def _ensure_storage(
    host: libvirt.virConnect, machine: Scope, pool: libvirt.virStoragePool, id: str
) -> tuple[str, str]:
    """Create what the machine reads and writes; return the paths of its disk and its seed."""
    spec, name = machine.spec, machine.short_id
    data = machine.bootstrap_data()
    if data.format != FORMAT:
        raise TerminalError("UnknownFormat", f"{data.format} is not {FORMAT}")
    cluster = machine.require_infra_cluster()
    endpoint = cluster.control_plane_endpoint
    files = seed_files(
        data.value,
        instance_id=uuid_of(machine.external_id),
        hostname=machine.name,
        provider_id=id,
        control_plane_host=endpoint.host if endpoint is not None else "",
    )
    images = cluster.spec(LibvirtClusterSpec).image_pool
    image = _image(host, images, spec.image)
    if spec.domain_type == CONTAINER:
        disk = ensure_copy(pool, f"{name_briefly(name)}.raw", image)
        folder = f"{disk.rpartition('/')[0]}/{_seed(name_briefly(name))}"
        _ensure_files(host, _seed(name), folder, files)
        return disk, folder
    disk = ensure_disk(pool, f"{name}.qcow2", image, spec.disk_gib)
    return disk, ensure_content(host, pool, f"{_seed(name)}.iso", seed_image(files))


def _ensure_files(
    host: libvirt.virConnect, name: str, folder: str, files: Mapping[str, bytes]
) -> None:
    """Create a folder with files as libvirt does: a pool with volumes."""
    ensure_pool(host, name, folder)
    pool = host.storagePoolLookupByName(name)
    for file, content in files.items():
        ensure_content(host, pool, file, content)


def _seed(name: str) -> str:
    return f"{name}-seed"


def _image(host: libvirt.virConnect, pool_name: str, name: str) -> libvirt.virStorageVol:
    pool = find_pool(host, pool_name)
    volume = find_volume(pool, name) if pool is not None else None
    if volume is None:
        raise ReconcileError("ImageNotFound", f"the storage pool {pool_name} has no volume {name}")
    return volume


def _state(
    machine: Scope, place: LibvirtClusterSpecHosts, domain: libvirt.virDomain, id: str
) -> InfraMachineState | Waiting:
    state = state_of(domain)
    status = LibvirtMachineStatus(
        host=place.name,
        domain=machine.short_id,
        domain_state=state,
        console_log=None if machine.spec.domain_type == CONTAINER else _console(machine),
    )
    is_running = state == "running"
    addresses = _addresses(machine, domain) if is_running else []
    # A host may never see the addresses on a network that is not its own.
    is_complete = bool(addresses) or (is_running and not _has_leases(machine))
    if not is_complete and not machine.is_provisioned:
        return Waiting(
            "WaitingForAddress", requeue_after=POLL_SECONDS, status=status, provider_id=id
        )
    return InfraMachineState(
        provider_id=id,
        addresses=[Address("Hostname", machine.name), *addresses],
        failure_domain=place.name,
        ready=is_running,
        reason="" if is_running else "DomainNotRunning",
        message="" if is_running else f"the domain is {state}",
        status=status,
    )


def _addresses(machine: Scope, domain: libvirt.virDomain) -> list[Address]:
    endpoint = machine.require_infra_cluster().control_plane_endpoint
    found = addresses_of(domain, has_leases=_has_leases(machine))
    # On a network without leases, the machine that has the API server's address uses it too.
    return [each for each in found if endpoint is None or each.address != endpoint.host]


def _has_leases(machine: Scope) -> bool:
    """Return whether the cluster has a network of its own, whose addresses libvirt gives."""
    return machine.require_infra_cluster().spec(LibvirtClusterSpec).network is None


def _console(machine: Scope) -> str:
    return f"{machine.short_id}-console.log"
