"""Controller for identities, which keeps them and their Secrets while other objects use them."""

from __future__ import annotations

from contextlib import suppress

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.infrastructure.caches import identity_value
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.infrastructure.identity_secret_metadata import IdentitySecretMetadata
from capsmith_runtime.infrastructure.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, ready
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials


class IdentityController:
    """Reconciles one kind of identity."""

    def __init__(
        self, kind: IdentityKind, identities: Informer, context: InfrastructureContext
    ) -> None:
        self._kind = kind
        self._identities = identities
        self._scope = context.caches.core.scope
        self._context = context
        resource = identities.resource
        self._finalizer = f"{resource.kind.lower()}.{resource.group}"
        # On Kubernetes' own kinds the API server accepts qualified names only.
        qualified = f"{resource.group}/{resource.kind.lower()}"
        self._secrets = IdentitySecretMetadata(kind, identities, context, qualified)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Keep an identity and its Secret while they are in use, and write the Ready condition."""
        obj = self._identities.get(key)
        if obj is None:
            # The last identity that names a Secret may be gone without its finalizer.
            await self._update_secret_finalizers(key, None)
            return Result()
        # Read also by a manager that may not write the identity: its objects use the Secret.
        credentials = await self._context.credentials.of_identity(self._kind, obj)
        if not self._scope.covers(obj):
            return Result()
        patcher = Patcher(self._context.client, self._identities, self._context.writer, obj)
        with suppress(ObjectDeletedError):
            # Before its identity goes, a Secret must be free.
            await self._update_secret_finalizers(key, obj)
            await self._update_finalizer(patcher)
            if not metadata.is_deleting(obj):
                await self._reconcile_normal(patcher, credentials)
        return Result()

    async def _update_secret_finalizers(self, key: NamespacedName, identity: JSON | None) -> None:
        if self._kind.refers_to_secret:
            await self._secrets.update_finalizers(key.namespace, identity)

    async def _update_finalizer(self, patcher: Patcher) -> None:
        """Add the finalizer when objects start to use the identity; remove it when none does.

        A manager that watches only some of the objects adds none, since another manager would
        remove it.
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
            await self._secrets.update_owners(obj)
        state = ready(True, constants.REASON_READY, "")
        if isinstance(found, Waiting):
            state = ready(False, found.reason, found.message)
        await patcher.write_conditions(state)
