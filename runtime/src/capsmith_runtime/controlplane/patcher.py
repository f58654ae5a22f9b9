"""Writes on a control plane object."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from capsmith_runtime.contract import conditions, metadata
from capsmith_runtime.contract.model import Condition, Object
from capsmith_runtime.kube.client import NotFound, key_of
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher


class ControlPlanePatcher(Patcher):
    """Adds annotations that record state, and status writes that can remove conditions."""

    async def patch_annotations(
        self, annotations: Mapping[str, str | None], *, locked: bool = False
    ) -> None:
        """Set annotations; None removes one.

        With ``locked``, raises Conflict if the object has changed since it was read.
        """
        current = metadata.annotations(self.obj)
        changed = {name: text for name, text in annotations.items() if current.get(name) != text}
        if not changed:
            return
        version = self.obj["metadata"]["resourceVersion"] if locked else ""
        body = {"metadata": {"annotations": changed}}
        resource = self._informer.resource
        try:
            self.obj = await self._client.patch(
                resource, key_of(self.obj), body, resource_version=version
            )
        except NotFound:
            raise ObjectDeletedError from None
        self._informer.update_from_write(self.obj)

    async def patch_status(
        self,
        status: Object,
        present: Sequence[Condition],
        absent: Collection[str],
        *,
        complete: bool = True,
    ) -> None:
        """Write the changed fields of the status, and remove the conditions in ``absent``."""
        full = self._writer.conditions(self.obj, status, present, self._now())
        for name in absent:
            full["conditions"] = conditions.remove(full["conditions"], name)
        await self._write(status=self._with_generation(full) if complete else full)
