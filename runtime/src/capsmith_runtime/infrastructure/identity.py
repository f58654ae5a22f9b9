"""Controller of identities: it owns their Secrets, so that ``clusterctl move`` moves them."""

from __future__ import annotations

from contextlib import suppress

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.kube.client import JSON, NamespacedName, NotFound
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.caches import BY_OWNER
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, ready
from capsmith_runtime.reconcile.results import Waiting


class IdentityController:
    """Reconcile the identity kind."""

    def __init__(
        self, identities: Informer, secrets: Informer, context: InfrastructureContext
    ) -> None:
        self._identities = identities
        self._secrets = secrets
        self._scope = context.caches.core.scope
        self._context = context

    async def reconcile(self, key: NamespacedName) -> Result:
        """Own the Secret, and report in the Ready condition whether it is usable."""
        obj = self._identities.get(key)
        if obj is None or metadata.deleting(obj) or not self._scope.covers(obj):
            return Result()
        secret = self._context.credentials.secret_of(obj)
        if secret is not None:
            await self._own(secret, obj)
        for former in self._secrets.by_index(BY_OWNER, metadata.uid(obj)):
            if metadata.name(former) != metadata.text(obj, "spec", "secretRef", "name"):
                await self._let_go(former, obj)
        found = self._context.credentials.of_identity(obj)
        state = ready(True, constants.REASON_READY, "")
        if isinstance(found, Waiting):
            state = ready(False, found.reason, found.message)
        with suppress(ObjectDeletedError):
            patcher = Patcher(self._context.client, self._identities, self._context.writer, obj)
            await patcher.write_conditions(state)
        return Result()

    async def _own(self, secret: JSON, identity: JSON) -> None:
        references = metadata.items(secret, "metadata", "ownerReferences")
        owner = {
            "apiVersion": self._identities.resource.api_version,
            "kind": self._identities.resource.kind,
            "name": metadata.name(identity),
            "uid": metadata.uid(identity),
        }
        if any(owner.items() <= item.items() for item in references):
            return
        # After a move the Secret may still refer to the identity by its former uid.
        kept = [item for item in references if not _same(item, owner)]
        await self._write_owners(secret, [*kept, owner])

    async def _let_go(self, secret: JSON, identity: JSON) -> None:
        """Release a Secret that the identity no longer uses, so that it is not deleted with it."""
        references = metadata.items(secret, "metadata", "ownerReferences")
        kept = [item for item in references if item.get("uid") != metadata.uid(identity)]
        await self._write_owners(secret, kept)

    async def _write_owners(self, secret: JSON, references: list[JSON]) -> None:
        new = {**secret, "metadata": {**secret["metadata"], "ownerReferences": references}}
        # A Secret that was deleted needs no owner.
        with suppress(NotFound):
            await write(self._context.client, SECRET, secret, new, self._secrets.update_from_write)


def _same(reference: JSON, owner: JSON) -> bool:
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"].partition("/")[0],
        owner["kind"],
        owner["name"],
    )
