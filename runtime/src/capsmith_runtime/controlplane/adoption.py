"""Adopts control plane Machines without an owner.

These are Machines that lost their owner references, for example after a restore, and Machines that
a user created before the cluster had a control plane object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.control_plane import CoreMachines
from capsmith_runtime.contract.kubernetes_version import is_within_one_minor
from capsmith_runtime.controlplane.control_plane import find_control_plane_machines
from capsmith_runtime.controlplane.desired_machine import (
    CONTROL_PLANE_NAME_LABEL,
    build_controller_reference,
)
from capsmith_runtime.controlplane.kind import ControlPlaneKind
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.live import is_alive


class MachineAdopter:
    """Makes a control plane the controller of its cluster's Machines that have none (SM-11)."""

    def __init__(
        self, kind: ControlPlaneKind, client: KubeClient, caches: Caches, core: CoreMachines
    ) -> None:
        self._kind = kind
        self._client = client
        self._caches = caches
        self._core = core

    async def adopt(self, obj: JSON, cluster: str) -> Mapping[str, str]:
        """Set the owner reference and the control plane's name on Machines without a controller.

        Returns why Machines without a controller cannot be adopted, keyed by their names.  Sends no
        request if none can be adopted.  Adopts nothing if the control plane is being deleted, or if
        another object now has its name.  Raises ConflictError if a Machine has changed since it was
        read.
        """
        adoptable, problems = self._examine(obj, cluster)
        # The cache may not show yet that the control plane is being deleted.
        if adoptable and await is_alive(self._client, self._kind.resource, obj):
            for machine in adoptable:
                await self._adopt_machine(machine, obj)
        return problems

    async def _adopt_machine(self, machine: JSON, obj: JSON) -> None:
        informer, owner = self._caches.machines, build_controller_reference(obj)
        label = {CONTROL_PLANE_NAME_LABEL: metadata.label_value(metadata.name(obj))}
        references = [*metadata.items(machine, "metadata", "ownerReferences"), owner]
        changed = {
            **machine["metadata"],
            "labels": {**metadata.labels(machine), **label},
            "ownerReferences": references,
        }
        new = {**machine, "metadata": changed}
        with suppress(NotFoundError):  # the watch reports the deletion
            resource = informer.resource
            await write(self._client, resource, machine, new, informer.update_from_write)

    def _examine(self, obj: JSON, cluster: str) -> tuple[Sequence[JSON], Mapping[str, str]]:
        """Return the Machines to adopt, and a sentence about each that cannot be adopted."""
        namespace = metadata.namespace(obj)
        _, foreign = find_control_plane_machines(self._caches, obj, namespace, cluster)
        # A Machine has at most one controller: another control plane's Machine must not be taken
        # from it.
        free = [machine for machine in foreign if not metadata.has_controller(machine)]
        problems = {metadata.name(each): self._find_problem(each, obj) for each in free}
        adoptable = [each for each in free if not problems[metadata.name(each)]]
        return adoptable, {
            name: f"Machine {name} has no controller and cannot be adopted: {problem}"
            for name, problem in sorted(problems.items())
            if problem
        }

    def _find_problem(self, machine: JSON, obj: JSON) -> str:
        """Return why a Machine cannot be adopted, or an empty string if it can.

        One without any control plane's name must have a version from which, or to which, its
        members can be upgraded. If its version is unknown, the user decides.
        """
        read, kind = self._core.read(machine), self._kind
        if read.bootstrap is None:
            return "it has no bootstrap configuration"
        found = f"{read.bootstrap.kind}.{read.bootstrap.group}"
        own = f"{kind.bootstrap_kind}.{kind.bootstrap_group}"
        if found != own:
            return f"its bootstrap configuration is of the kind {found}, not {own}"
        name = metadata.labels(machine).get(CONTROL_PLANE_NAME_LABEL)
        if name is not None:
            own_name = metadata.label_value(metadata.name(obj))
            label = CONTROL_PLANE_NAME_LABEL
            return "" if name == own_name else f"its label {label} is {name}, not {own_name}"
        version = metadata.text(obj, "spec", "version")
        if not version or read.version is None or is_within_one_minor(read.version, version):
            return ""
        return f"its version {read.version} is more than one minor release away from {version}"
