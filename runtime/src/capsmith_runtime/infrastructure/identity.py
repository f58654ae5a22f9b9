"""Controller of identities, which owns their Secrets so that ``clusterctl move`` moves them.

A Secret is deleted together with its owner, and without it no cluster that uses the identity can
be deleted.  A finalizer therefore keeps an identity while other objects refer to it.
"""

from __future__ import annotations

from contextlib import suppress

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.infrastructure.caches import identity_value
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.caches import BY_OWNER
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, ready
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials


class IdentityController:
    """Controller of one kind of identities."""

    def __init__(
        self, kind: IdentityKind, identities: Informer, context: InfrastructureContext
    ) -> None:
        self._kind = kind
        self._identities = identities
        self._scope = context.caches.core.scope
        self._context = context
        resource = identities.resource
        self._finalizer = f"{resource.kind.lower()}.{resource.group}"

    async def reconcile(self, key: NamespacedName) -> Result:
        """Own the Secret of one identity; report in Ready whether the Secret is usable."""
        obj = self._identities.get(key)
        if obj is None:
            return Result()
        # Read also by a manager that may not write the identity: its objects use the Secret.
        credentials = await self._context.credentials.of_identity(self._kind, obj)
        if not self._scope.covers(obj):
            return Result()
        patcher = Patcher(self._context.client, self._identities, self._context.writer, obj)
        with suppress(ObjectDeletedError):
            await self._update_finalizer(patcher)
            if not metadata.is_deleting(obj):
                await self._reconcile_normal(patcher, credentials)
        return Result()

    async def _update_finalizer(self, patcher: Patcher) -> None:
        """Keep the finalizer exactly while objects use the identity.

        A manager that sees only some of the objects adds none: another one would remove it.
        """
        name = identity_value(self._kind.resource.kind, key_of(patcher.obj))
        users = self._context.caches.find_kinds_using(name)
        deleting = metadata.is_deleting(patcher.obj)
        if self._finalizer in metadata.finalizers(patcher.obj):
            if not users and (deleting or self._scope.is_unlimited):
                await patcher.remove_finalizer(self._finalizer)
            elif deleting:
                message = f"in use by objects of kind {', '.join(users)}"
                await patcher.write_conditions(ready(False, constants.REASON_DELETING, message))
        elif users and not deleting and self._scope.is_unlimited:
            await patcher.protect(self._finalizer)

    async def _reconcile_normal(self, patcher: Patcher, found: Credentials | Waiting) -> None:
        obj = patcher.obj
        if self._kind.refers_to_secret:
            await self._own_secret(obj)
        state = ready(True, constants.REASON_READY, "")
        if isinstance(found, Waiting):
            state = ready(False, found.reason, found.message)
        await patcher.write_conditions(state)

    async def _own_secret(self, obj: JSON) -> None:
        secret = self._context.credentials.secret_of(self._kind, obj)
        if secret is not None:
            await self._own(secret, obj)
        # An identity may name another Secret now; the former one must not be deleted together with
        # it.
        for former in self._secrets.by_index(BY_OWNER, metadata.uid(obj)):
            if metadata.name(former) != metadata.text(obj, "spec", "secretRef", "name"):
                await self._let_go(former, obj)

    @property
    def _secrets(self) -> Informer:
        return self._context.caches.secrets.informers[self._kind.resource.namespaced]

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
        with suppress(NotFoundError):
            await write(self._context.client, SECRET, secret, new, self._secrets.update_from_write)


def _same(reference: JSON, owner: JSON) -> bool:
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"].partition("/")[0],
        owner["kind"],
        owner["name"],
    )
