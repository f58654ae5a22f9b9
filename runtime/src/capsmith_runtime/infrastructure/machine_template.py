"""Controller of machine templates: it writes the capacity, for autoscaling from zero (IM-16)."""

from __future__ import annotations

from typing import Any

from capsmith_runtime.api.decoding import DecodingError, decode
from capsmith_runtime.contract import guards, metadata
from capsmith_runtime.contract.status_writer import set_or_drop
from capsmith_runtime.infrastructure.kinds import InfraMachineKind
from capsmith_runtime.infrastructure.reconcilers import InfraMachineReconciler
from capsmith_runtime.infrastructure.results import MachineCapacity
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.base import ControllerContext


class MachineTemplateController:
    """Reconcile the template kind of one kind of infrastructure machines."""

    def __init__(
        self, kind: InfraMachineKind, informer: Informer, context: ControllerContext
    ) -> None:
        self._kind = kind
        self._reconciler: InfraMachineReconciler[Any] = kind.reconciler()
        self._informer = informer
        self._context = context
        self._log = get_logger("template", kind=informer.resource.kind)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Write the capacity of machines of one template."""
        obj = self._informer.get(key)
        if obj is None or metadata.deleting(obj) or guards.pause_message(obj, "", None):
            return Result()
        try:
            fields = metadata.mapping(obj, "spec", "template", "spec")
            spec = decode(self._kind.spec, fields, "spec.template.spec")
        except DecodingError as error:
            # The conditions of its machines report the error; templates have no conditions.
            self._log.warning("cannot read the template", object=str(key), error=str(error))
            return Result()
        capacity: MachineCapacity | None = await self._context.executor.call(
            self._reconciler.capacity, spec
        )
        status = dict(metadata.mapping(obj, "status"))
        found = capacity or MachineCapacity(resources={})
        set_or_drop(status, "capacity", dict(found.resources))
        system = {"architecture": found.architecture, "operatingSystem": found.operating_system}
        set_or_drop(status, "nodeInfo", {name: value for name, value in system.items() if value})
        new = {**obj, "status": status}
        await write(
            self._context.client,
            self._informer.resource,
            obj,
            new,
            self._informer.update_from_write,
        )
        return Result()
