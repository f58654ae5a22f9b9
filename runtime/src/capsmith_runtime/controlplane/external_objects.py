"""Caches of objects whose kinds belong to other providers: templates and objects of Machines.

The kinds are known only when a control plane references them, so each cache starts on first use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CONTROL_PLANE_LABEL
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.controlplane.contract_kinds import ContractKinds
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.results import NotAvailableError, Waiting
from capsmith_runtime.reconcile.watches import on_change

TEMPLATE_NOT_FOUND: Final = "InfrastructureTemplateNotFound"
_SYNC_SECONDS: Final = 10.0

EventHandler = Callable[[JSON], None]


class CacheNotSyncedError(Exception):
    """A cache could not be filled in time; try again later."""


@dataclass(frozen=True, slots=True)
class ExternalObject:
    """An object of another provider, with the informer that it comes from."""

    informer: Informer
    obj: JSON

    @property
    def resource(self) -> ResourceType:
        """The resource type of the object."""
        return self.informer.resource


class ExternalObjects:
    """One informer per kind; objects of Machines are limited to those of control planes."""

    def __init__(
        self,
        caches: Caches,
        kinds: ContractKinds,
        on_machine_object: EventHandler,
        on_template: EventHandler,
    ) -> None:
        """Call one handler for changed objects of Machines, the other for changed templates."""
        self._caches = caches
        self._kinds = kinds
        self._on_machine_object = on_machine_object
        self._on_template = on_template
        self._informers: dict[tuple[str, str], Informer] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Run the informers until cancelled."""
        running: dict[Informer, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self._changed.clear()
                current = set(self._informers.values())
                for informer in running.keys() - current:
                    # Replaced: the contract version of its kind has changed.
                    running.pop(informer).cancel()
                for informer in current - running.keys():
                    running[informer] = group.create_task(informer.run())
                await self._changed.wait()

    async def get(self, namespace: str, reference: ObjectRef | None) -> ExternalObject | None:
        """Return the object that a Machine references, if it exists.

        Raises CacheNotSyncedError, and NotAvailableError if the kind cannot be resolved.
        """
        if reference is None:
            return None
        return await self._get(namespace, reference, CONTROL_PLANE_LABEL, self._on_machine_object)

    async def get_template(self, namespace: str, reference: ObjectRef) -> ExternalObject:
        """Return the template that a control plane references.

        Raises CacheNotSyncedError, and NotAvailableError if it does not exist.
        """
        template = await self._get(namespace, reference, "", self._on_template)
        if template is None:
            message = f"{reference.kind} {reference.name} does not exist"
            raise NotAvailableError(Waiting(TEMPLATE_NOT_FOUND, message))
        return template

    async def _get(
        self, namespace: str, reference: ObjectRef, labels: str, handler: EventHandler
    ) -> ExternalObject | None:
        resource = self._kinds.resolve(reference.group, reference.kind)
        informer = self._informers.get((resource.group, resource.kind))
        if informer is None or informer.resource != resource:
            informer = self._start(resource, labels, handler)
        if not informer.synced.is_set():
            try:
                async with asyncio.timeout(_SYNC_SECONDS):
                    await informer.synced.wait()
            except TimeoutError:
                message = f"no list of {resource.plural}.{resource.group}"
                raise CacheNotSyncedError(message) from None
        obj = informer.get(NamespacedName(namespace, reference.name))
        return ExternalObject(informer, obj) if obj is not None else None

    def _start(self, resource: ResourceType, labels: str, handler: EventHandler) -> Informer:
        selection = Selection(namespace=self._caches.scope.namespace, labels=labels)
        informer = self._caches.informer(resource, selection)
        # Status changes are ignored: only core reads the status of these objects.
        informer.add_handler(on_change(_relevant_fields, handler))
        self._informers[(resource.group, resource.kind)] = informer
        self._changed.set()
        return informer


def _relevant_fields(obj: Object) -> Sequence[object]:
    return (
        metadata.mapping(obj, "spec"),
        metadata.labels(obj),
        metadata.annotations(obj),
        metadata.items(obj, "metadata", "ownerReferences"),
    )
