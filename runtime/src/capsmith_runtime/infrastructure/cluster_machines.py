"""Finds an infrastructure cluster's machines, such as the members of its load balancer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, cast

from capsmith_runtime.contract import constants, external_id, metadata
from capsmith_runtime.contract.model import Address, AddressType
from capsmith_runtime.infrastructure.api import InfraMachineView, WatchedMachines
from capsmith_runtime.infrastructure.caches import InfrastructureCaches
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_CLUSTER, BY_CONTROL_PLANE, cluster_of

_MACHINES_AT_ONCE: Final = 250


def is_control_plane(caches: InfrastructureCaches, obj: JSON) -> bool:
    """Return whether an infrastructure machine belongs to the control plane."""
    # The label outlives the Machine, which may be gone when a deletion begins.
    if constants.CONTROL_PLANE_LABEL in metadata.labels(obj):
        return True
    machine = caches.machine_of(obj)
    return machine is not None and machine.is_control_plane


async def list_machines(
    context: InfrastructureContext, cluster: NamespacedName, watched: WatchedMachines
) -> tuple[InfraMachineView, ...]:
    """Return the ``watched`` machines of a Cluster from the caches, sorted by kind and name.

    A machine counts only if it belongs to a Machine of this Cluster and if no other object holds
    its ids. Otherwise a user who writes the cluster name label and the ids could make another
    tenant's server a member of the cluster.
    """
    caches = context.caches
    views: list[InfraMachineView] = []
    for number, obj in enumerate(_candidates(caches, cluster, watched), 1):
        # Without yielding, views of thousands of machines would block the event loop for too long.
        if number % _MACHINES_AT_ONCE == 0:
            await asyncio.sleep(0)
        machine = caches.machine_of(obj)
        is_owned = machine is not None and machine.cluster_name == cluster.name
        if is_owned and caches.held_ids.find_taken(obj) is None:
            views.append(create_machine_view(context, obj))
    return tuple(sorted(views, key=lambda view: (view.kind, view.name)))


def _candidates(
    caches: InfrastructureCaches, cluster: NamespacedName, watched: WatchedMachines
) -> Iterator[JSON]:
    """Yield a Cluster's ``watched`` machines; each is decoded when it is requested."""
    value = f"{cluster.namespace}/{cluster.name}"
    if watched is WatchedMachines.ALL:
        for informer in caches.machines.values():
            yield from informer.by_index(BY_CLUSTER, value)
    elif watched is WatchedMachines.CONTROL_PLANE:
        for informer, key in _find_control_plane(caches, value):
            obj = informer.get(key)
            if obj is not None and value in cluster_of(obj) and is_control_plane(caches, obj):
                yield obj


def _find_control_plane(
    caches: InfrastructureCaches, cluster: str
) -> dict[tuple[Informer, NamespacedName], None]:
    """Return the machines that have the control plane's label, or a Machine that has it."""
    found: dict[tuple[Informer, NamespacedName], None] = {}
    for informer in caches.machines.values():
        keys = informer.keys_by_index(BY_CONTROL_PLANE, cluster)
        found |= dict.fromkeys((informer, key) for key in keys)
    for machine in caches.core.machines.by_index(BY_CONTROL_PLANE, cluster):
        reference = caches.core.reader.read_infrastructure(machine)
        named = caches.machines.get(reference.kind) if reference is not None else None
        if reference is not None and named is not None:
            found[named, NamespacedName(metadata.namespace(machine), reference.name)] = None
    return found


def create_machine_view(context: InfrastructureContext, obj: JSON) -> InfraMachineView:
    """Return the view of an infrastructure machine that other reconcilers receive."""
    return InfraMachineView(
        name=metadata.name(obj),
        namespace=metadata.namespace(obj),
        external_id=external_id.of(obj, metadata.text(obj, "apiVersion").partition("/")[0]),
        provider_id=metadata.text(obj, "spec", "providerID") or None,
        addresses=tuple(_read_addresses(obj)),
        is_control_plane=is_control_plane(context.caches, obj),
        is_provisioned=context.writer.is_provisioned(obj),
        deleting=metadata.is_deleting(obj),
        raw_spec=metadata.mapping(obj, "spec"),
        raw_status=metadata.mapping(obj, "status"),
        kind=metadata.text(obj, "kind"),
    )


def _read_addresses(obj: JSON) -> Iterator[Address]:
    for each in metadata.items(obj, "status", "addresses"):
        kind = cast(AddressType, metadata.text(each, "type"))
        try:
            address = Address(kind, metadata.text(each, "address"))
        except ValueError:
            # A status that another version of the provider wrote must not fail the whole cluster.
            continue
        yield address


def select_membership_fields(obj: JSON) -> tuple[object, ...]:
    """Return the infrastructure machine values that reconcile the cluster when they change."""
    status = metadata.mapping(obj, "status")
    return (
        metadata.labels(obj).get(constants.CLUSTER_NAME_LABEL),
        constants.CONTROL_PLANE_LABEL in metadata.labels(obj),
        metadata.items(obj, "metadata", "ownerReferences"),
        metadata.is_deleting(obj),
        metadata.mapping(obj, "spec"),
        metadata.items(status, "addresses"),
        # Whether it is provisioned, in contract v1beta2 and in v1beta1.
        metadata.mapping(status, "initialization"),
        status.get("ready"),
    )
