"""Adopts control plane Machines without an owner.

These are Machines that lost their owner references, for example after a restore, and Machines that
a user created before the cluster had a control plane object.
"""

from __future__ import annotations

from collections.abc import Sequence

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane import CoreMachines
from capsmith_runtime.contract.kubernetes_version import is_within_one_minor
from capsmith_runtime.controlplane.control_plane import find_control_plane_machines
from capsmith_runtime.controlplane.desired_machine import (
    CONTROL_PLANE_NAME_LABEL,
    build_controller_reference,
)
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.errors import ConflictError, NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.live import is_alive


class MachineAdopter:
    """Makes a control plane the controller of its cluster's Machines without one (SM-11)."""

    def __init__(
        self, kind: ControlPlaneKind, client: KubeClient, caches: Caches, core: CoreMachines
    ) -> None:
        self._kind = kind
        self._client = client
        self._caches = caches
        self._core = core

    async def adopt(self, obj: JSON, cluster: str) -> None:
        """Set the owner reference and the control plane's name on Machines without a controller.

        If there are no such Machines, sends no request. Does nothing if the control plane is being
        deleted, or if another object now has its name. A Machine that changes in the meantime is
        left for the next reconcile.
        """
        adoptable = self._find_adoptable(obj, cluster)
        # The cache may not show yet that the control plane is being deleted.
        if not adoptable or not await is_alive(self._client, self._kind.resource, obj):
            return
        informer, owner = self._caches.machines, build_controller_reference(obj)
        label = {CONTROL_PLANE_NAME_LABEL: metadata.label_value(metadata.name(obj))}
        for machine in adoptable:
            references = [*metadata.items(machine, "metadata", "ownerReferences"), owner]
            changed = {
                **machine["metadata"],
                "labels": {**metadata.labels(machine), **label},
                "ownerReferences": references,
            }
            new = {**machine, "metadata": changed}
            try:
                resource = informer.resource
                await write(self._client, resource, machine, new, informer.update_from_write)
            # Another writer has changed or deleted the Machine: the next reconcile decides again.
            except (NotFoundError, ConflictError):
                continue

    def _find_adoptable(self, obj: JSON, cluster: str) -> Sequence[JSON]:
        namespace = metadata.namespace(obj)
        _, foreign = find_control_plane_machines(self._caches, obj, namespace, cluster)
        return [
            machine
            for machine in foreign
            # A Machine has at most one controller: another control plane's Machine must not be
            # taken from it.
            if not metadata.has_controller(machine)
            and self._has_own_bootstrap(machine)
            and self._belongs_to(machine, obj)
        ]

    def _belongs_to(self, machine: JSON, obj: JSON) -> bool:
        """Return whether a Machine without a controller may become the control plane's.

        One without any control plane's name must have a version from which, or to which, its
        members can be upgraded.
        """
        name = metadata.labels(machine).get(CONTROL_PLANE_NAME_LABEL)
        if name is not None:
            return name == metadata.label_value(metadata.name(obj))
        version = self._core.read(machine).version
        return version is None or is_within_one_minor(
            version, metadata.text(obj, "spec", "version")
        )

    def _has_own_bootstrap(self, machine: JSON) -> bool:
        """Return whether this kind's bootstrap provider configures a Machine."""
        reference = self._core.read(machine).bootstrap
        own = (self._kind.bootstrap_group, self._kind.bootstrap_kind)
        return reference is not None and (reference.group, reference.kind) == own
