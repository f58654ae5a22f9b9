"""Creates and deletes Machines, so that a crash between any two requests does no harm.

A Machine consists of three objects. Their common name is recorded on the control plane before the
first of them is created; a later reconcile that finds the name either completes the Machine or
deletes its objects. As a result, the same Machine is never created twice, and no object is left
over.
"""

from __future__ import annotations

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import MACHINE_KIND
from capsmith_runtime.contract.control_plane import ControlPlaneMachine, CoreMachines
from capsmith_runtime.controlplane.annotations import PendingMachine, RemediationData
from capsmith_runtime.controlplane.control_plane import is_owned
from capsmith_runtime.controlplane.desired_machine import DesiredMachine
from capsmith_runtime.controlplane.external_objects import ContractKinds, ExternalObjects
from capsmith_runtime.errors import AlreadyExistsError, ConflictError, NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType, key_of
from capsmith_runtime.reconcile.kinds import core_type


class MachineNameTakenError(Exception):
    """Raised if an object with the chosen name has another owner; retry with another name."""


class MachineClient:
    """Creates, finds and deletes Machines and the objects that they consist of."""

    def __init__(
        self,
        client: KubeClient,
        kinds: ContractKinds,
        external: ExternalObjects,
        core: CoreMachines,
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._external = external
        self._core = core
        self._machines = core_type(core.version, MACHINE_KIND, "machines")

    async def create(
        self,
        desired: DesiredMachine,
        pending: PendingMachine,
        replaced: RemediationData | None,
        *,
        resumed: bool,
    ) -> None:
        """Create whichever of a Machine's objects do not exist yet.

        ``replaced`` is recorded as the Machine that this one replaces; ``resumed`` is true after an
        interruption. Raises MachineNameTakenError if an object with that name has another owner or
        is being deleted, and any error that occurs when the template is read.
        """
        namespace = desired.cluster.namespace
        key = NamespacedName(namespace, pending.name)
        if resumed and await self._get(self._machines, key, desired) is not None:
            return
        # The Machine comes last: as soon as it exists, core works on it and needs the two others.
        template = await self._external.get_template(namespace, desired.template.infrastructure)
        infrastructure_type = self._kinds.object_type(template.resource)
        bootstrap_type = self._kinds.resolve(desired.bootstrap.group, desired.bootstrap.kind)
        clone = desired.infrastructure(pending.name, infrastructure_type, template.obj)
        infrastructure = await self._ensure(infrastructure_type, clone, desired)
        config = desired.bootstrap_config(pending.name, bootstrap_type)
        bootstrap = await self._ensure(bootstrap_type, config, desired)
        draft = desired.machine(pending, infrastructure, bootstrap, replaced)
        await self._ensure(self._machines, self._core.build(draft), desired)

    async def exists(self, desired: DesiredMachine, name: str) -> bool:
        """Return whether the Machine exists on the API server, regardless of the cache."""
        key = NamespacedName(desired.cluster.namespace, name)
        return await self._get_owned(self._machines, key, desired) is not None

    async def clean_up(
        self, desired: DesiredMachine, pending: PendingMachine, key: NamespacedName
    ) -> bool:
        """Delete the objects of a Machine that does not exist, and return whether none is left.

        Once the Machine exists, it owns these objects, and core deletes them.
        """
        # From the record: the template in the spec may be of another kind by now.
        kind, group = pending.infrastructure.split(".", 1)
        types = (
            self._kinds.object_type(self._kinds.resolve(group, kind)),
            self._kinds.resolve(desired.bootstrap.group, desired.bootstrap.kind),
        )
        clean = True
        for resource in types:
            obj = await self._get_owned(resource, key, desired)
            if obj is not None:
                clean = False
                await self._delete(resource, key_of(obj), metadata.uid(obj))
        return clean

    async def delete(self, machine: ControlPlaneMachine) -> None:
        """Delete the Machine with this UID, but never another Machine with the same name."""
        key = NamespacedName(machine.namespace, machine.name)
        await self._delete(self._machines, key, machine.uid)

    async def _ensure(self, resource: ResourceType, obj: JSON, desired: DesiredMachine) -> JSON:
        try:
            # Usually nothing exists yet, so reading first would cost a request for each object.
            return await self._client.create(resource, obj)
        except AlreadyExistsError:
            existing = await self._get(resource, key_of(obj), desired)
            if existing is None:
                raise
            return existing

    async def _get(
        self, resource: ResourceType, key: NamespacedName, desired: DesiredMachine
    ) -> JSON | None:
        try:
            obj = await self._client.get(resource, key)
        except NotFoundError:
            return None
        if metadata.is_deleting(obj) or not _is_own(obj, desired):
            raise MachineNameTakenError(f"{resource.kind} {key}")
        return obj

    async def _get_owned(
        self, resource: ResourceType, key: NamespacedName, desired: DesiredMachine
    ) -> JSON | None:
        try:
            obj = await self._client.get(resource, key)
        except NotFoundError:
            return None
        return obj if _is_own(obj, desired) else None

    async def _delete(self, resource: ResourceType, key: NamespacedName, uid: str) -> None:
        try:
            await self._client.delete(resource, key, uid=uid)
        except (NotFoundError, ConflictError):
            return  # already deleted, or another object of the same name


def _is_own(obj: JSON, desired: DesiredMachine) -> bool:
    """Return whether the control plane owns an object, or did before owners were lost (SM-11)."""
    if is_owned(obj, desired.owner):
        return True
    has_owners = bool(metadata.items(obj, "metadata", "ownerReferences"))
    return not has_owners and desired.labels.items() <= metadata.labels(obj).items()
