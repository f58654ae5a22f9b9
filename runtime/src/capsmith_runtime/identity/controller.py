"""Controller for identities, which keeps them and their Secrets while other objects use them.

Without its Secret, nothing that used an identity can be deleted from the infrastructure: a
finalizer keeps the Secret as long as the identity is in use.  Several identities may name the same
Secret.

``clusterctl move`` moves everything that a cluster-scoped identity owns, but leaves the originals
in place for other namespaces.  A namespaced identity owns nothing: otherwise the garbage collector
would delete a Secret that the identity's creator may not be allowed to delete.  A label makes its
Secret move.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.errors import ForbiddenError, NotFoundError
from capsmith_runtime.identity.caches import IdentityCaches, secret_value
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.identity.references import create_sources_record, identity_value
from capsmith_runtime.identity.resolver import CredentialsResolver
from capsmith_runtime.identity.secrets import BY_FINALIZER, finalizer_value
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, key_of
from capsmith_runtime.kube.controller import Result
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.reconcile.caches import BY_OWNER, BY_SECRET
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.kinds import SECRET
from capsmith_runtime.reconcile.patcher import ObjectDeletedError, Patcher, ready
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials

_LONGEST: Final = 63
"""Maximum length of a finalizer without a slash (IC-21), in characters."""
_MOVE_LABEL: Final = "clusterctl.cluster.x-k8s.io/move"


class IdentityController:
    """Keeps identities of one kind and their Secrets from being deleted while they are in use."""

    def __init__(
        self,
        kind: IdentityKind,
        caches: IdentityCaches,
        resolver: CredentialsResolver,
        context: ControllerContext,
    ) -> None:
        self._kind = kind
        self._identities = caches.identities[kind.resource.kind]
        self._scope = caches.core.scope
        self._caches = caches
        self._resolver = resolver
        self._context = context
        resource = kind.resource
        # On Kubernetes' own kinds, the API server accepts only qualified finalizer names.
        qualified = f"{resource.group}/{resource.kind.lower()}"
        usual = f"{resource.kind.lower()}.{resource.group}"
        self._finalizer = usual if len(usual) <= _LONGEST else qualified
        self._secrets = IdentitySecretMetadata(kind, caches, resolver, context.client, qualified)

    async def reconcile(self, key: NamespacedName) -> Result:
        """Protect an identity in use and its Secret from deletion; write the Ready condition."""
        obj = self._identities.get(key)
        if obj is None:
            # The last identity that names a Secret may be gone without its finalizer.
            await self._update_secret_finalizers(key, None)
            return Result()
        # Read even by a manager that may not write the identity: its objects use the Secret.  An
        # identity that is being deleted must not wait for a Secret that cannot be read.
        credentials: Credentials | Waiting = Credentials()
        if not metadata.is_deleting(obj):
            credentials = await self._resolver.of_identity(self._kind, obj)
        if not self._scope.covers(obj):
            return Result()
        patcher = Patcher(self._context.client, self._identities, self._context.writer, obj)
        with suppress(ObjectDeletedError):
            # The Secret must be released before its identity is gone.
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
        users = self._caches.find_kinds_using(name)
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
        if self._kind.sources and not isinstance(found, Waiting):
            await self._record_sources(patcher, found)
        state = ready(True, constants.REASON_READY, "")
        if isinstance(found, Waiting):
            state = ready(False, found.reason, found.message)
        await patcher.write_conditions(state)

    async def _record_sources(self, patcher: Patcher, credentials: Credentials) -> None:
        """Record a complete chain, whose identities are kept even while one between is missing."""
        sources: list[tuple[str, str]] = []
        source = credentials.source
        while source is not None:
            sources.append((source.identity_kind, source.identity.rpartition("/")[2]))
            source = source.source
        name, value = create_sources_record(patcher.obj, sources)
        if metadata.annotations(patcher.obj).get(name, "") != value:
            await patcher.annotate(name, value)


class IdentitySecretMetadata:
    """Writes the metadata of the Secrets named by one kind's identities."""

    def __init__(
        self,
        kind: IdentityKind,
        caches: IdentityCaches,
        resolver: CredentialsResolver,
        client: KubeClient,
        finalizer: str,
    ) -> None:
        """Initialise for one kind; ``finalizer`` is the finalizer to set on the Secrets."""
        self._kind = kind
        self._identities = caches.identities[kind.resource.kind]
        self._caches = caches
        self._resolver = resolver
        self._client = client
        self._finalizer = finalizer

    @property
    def _secrets(self) -> Informer:
        return self._caches.secrets.informers[self._kind.resource.namespaced]

    async def update_finalizers(self, namespace: str, identity: JSON | None) -> None:
        """Protect an identity's Secret from deletion while in use, and release unused Secrets.

        ``namespace`` is the identity's namespace; ``identity`` is None if it was deleted.  A
        manager that watches only some of the identity's users adds no finalizer.
        """
        scope = self._caches.core.scope
        where = namespace if self._kind.resource.namespaced else scope.own_namespace
        # Found by the finalizer: an identity that was deleted or changed no longer names its
        # Secret.
        for kept in self._secrets.by_index(BY_FINALIZER, finalizer_value(where, self._finalizer)):
            if not self._is_in_use(kept):
                finalizers = metadata.finalizers(kept)
                rest = [name for name in finalizers if name != self._finalizer]
                await self._write(kept, {"finalizers": rest})
        secret = self._find(identity) if identity is not None else None
        if secret is None or metadata.is_deleting(secret) or not scope.is_unlimited:
            return
        finalizers = metadata.finalizers(secret)
        if self._finalizer not in finalizers and self._is_in_use(secret):
            await self._write(secret, {"finalizers": [*finalizers, self._finalizer]})

    async def update_owners(self, identity: JSON) -> None:
        """Make an identity's Secret move with it, and release Secrets that it no longer names."""
        secret = self._find(identity)
        if self._kind.resource.namespaced:
            if secret is not None and _MOVE_LABEL not in metadata.labels(secret):
                labels = {**metadata.labels(secret), _MOVE_LABEL: ""}
                await self._write(secret, {"labels": labels})
        elif secret is not None:
            await self._own(secret, identity)
        for owned in self._secrets.by_index(BY_OWNER, metadata.uid(identity)):
            is_named = metadata.name(owned) == metadata.text(identity, "spec", "secretRef", "name")
            if self._kind.resource.namespaced or not is_named:
                await self._release(owned, identity)

    def _find(self, identity: JSON) -> JSON | None:
        return self._resolver.secret_of(self._kind, identity)

    def _is_in_use(self, secret: JSON) -> bool:
        """Return whether an identity that is in use names ``secret``."""
        kind = self._kind.resource
        namespace = metadata.namespace(secret) if kind.namespaced else ""
        value = secret_value(namespace, metadata.name(secret))
        return any(
            self._caches.find_kinds_using(identity_value(kind.kind, key_of(identity)))
            for identity in self._identities.by_index(BY_SECRET, value)
        )

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
        kept = [item for item in references if not _is_same(item, owner)]
        await self._write(secret, {"ownerReferences": [*kept, owner]})

    async def _release(self, secret: JSON, identity: JSON) -> None:
        """Remove ``identity`` from the Secret's owners, so that both are not deleted together."""
        references = metadata.items(secret, "metadata", "ownerReferences")
        kept = [item for item in references if item.get("uid") != metadata.uid(identity)]
        # OwnerReferencesPermissionEnforcement requires the permission to delete Secrets, which the
        # manager does not have in all namespaces; an owner from capsmith 0.1 stays there.
        with suppress(ForbiddenError):
            await self._write(secret, {"ownerReferences": kept})

    async def _write(self, secret: JSON, fields: JSON) -> None:
        # The cache contains the result of a preceding write.
        latest = self._secrets.get(key_of(secret)) or secret
        new = {**latest, "metadata": {**latest["metadata"], **fields}}
        # A Secret that was deleted needs neither owner nor finalizer.
        with suppress(NotFoundError):
            await write(self._client, SECRET, latest, new, self._secrets.update_from_write)


def _is_same(reference: JSON, owner: JSON) -> bool:
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return (group, reference.get("kind"), reference.get("name")) == (
        owner["apiVersion"].partition("/")[0],
        owner["kind"],
        owner["name"],
    )
