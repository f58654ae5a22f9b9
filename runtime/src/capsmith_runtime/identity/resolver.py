"""Finds the credentials of the identity that an object uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.identity import references
from capsmith_runtime.identity.caches import IdentityCaches
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials

MAX_CHAIN: Final = 8
"""Maximum length of a chain of identities, each of which is derived from the next."""
_CONTRACT_FIELDS: Final = ("secretRef", "allowedNamespaces")


class _Link(NamedTuple):
    """An identity in a chain of identities, of which each is derived from the next."""

    kind: IdentityKind
    identity: JSON

    def __str__(self) -> str:
        return f"{self.kind.resource.kind} {key_of(self.identity)}"


class CredentialsResolver:
    """Resolves identities and reads their Secrets, or returns Waiting if either is missing."""

    def __init__(self, caches: IdentityCaches) -> None:
        self._caches = caches
        self._own_namespace = caches.core.scope.own_namespace

    async def of_object(self, obj: JSON) -> Credentials | Waiting:
        """Return the credentials for an object that refers to an identity.

        The object is an infrastructure cluster or an object of another kind with
        ``spec.identityRef``. The credentials are empty if it refers to no identity.
        """
        reference = references.read_reference(obj)
        return await self._of_reference(reference, obj)

    async def of_member(self, obj: JSON, cluster: Cluster | None) -> Credentials | Waiting:
        """Return the credentials for an object that belongs to a Cluster.

        The object's own identity takes precedence over that of the Cluster's infrastructure. If the
        infrastructure is gone, the identity recorded on the object is used.
        """
        own = self._caches.find_override(obj)
        if own:
            return await self._of_reference(own, obj)
        default = self._caches.find_default(cluster) if cluster is not None else None
        if default is not None and not isinstance(default, Waiting):
            return await self._of_reference(default, obj)
        record = references.read_record(obj)
        if record is not None:
            return await self._of_reference(record, obj)
        return default or Credentials()

    def has_override(self, obj: JSON) -> bool:
        """Return whether a machine or pool names its own identity."""
        return bool(self._caches.find_override(obj))

    async def of_override(self, obj: JSON) -> Credentials | Waiting:
        """Return the credentials of a machine's or pool's own identity, or empty credentials."""
        return await self._of_reference(self._caches.find_override(obj), obj)

    async def of_machine(self, machine: JSON | None) -> Credentials | Waiting:
        """Return the credentials for the identity that is recorded on a machine or pool.

        Deletions use them after the infrastructure cluster is gone.  Returns Waiting if nothing is
        recorded, and empty credentials if the provider has no identities.
        """
        # Without identities nothing is recorded, and nothing is needed.
        if not self._caches.kinds:
            return Credentials()
        record = references.read_record(machine) if machine is not None else None
        if machine is None or record is None:
            return _waiting(
                constants.REASON_IDENTITY_NOT_FOUND, "the infrastructure cluster is gone"
            )
        return await self._of_reference(record, machine)

    async def _of_reference(self, reference: Object, user: JSON) -> Credentials | Waiting:
        kinds = self._caches.kinds
        if not kinds or not metadata.text(reference, "name"):
            return Credentials()
        namespace = metadata.namespace(user)
        found = self._find(reference, kinds, user, field="identityRef", namespace=namespace)
        if isinstance(found, Waiting):
            return found
        return await self._of_chain(found, namespace)

    def _find(
        self,
        reference: Object,
        kinds: tuple[IdentityKind, ...],
        user: JSON,
        *,
        field: str,
        namespace: str | None,
    ) -> _Link | Waiting:
        """Return the identity that ``field`` of an object's spec names, if it allows the namespace.

        ``namespace`` is None if it does not have to allow any.
        """
        kind, name = references.find_kind(kinds, reference), metadata.text(reference, "name")
        if kind is None:
            names = " or ".join(each.resource.kind for each in kinds)
            message = f"spec.{field}.kind must be {names}"
            return _waiting(constants.REASON_IDENTITY_NOT_FOUND, message)
        key = kind.find_in(name, user)
        identity = self._caches.identities[kind.resource.kind].get(key)
        if identity is None:
            message = f"{kind.resource.kind} {name} does not exist: create it with kubectl apply"
            return _waiting(constants.REASON_IDENTITY_NOT_FOUND, message)
        # A namespaced identity was looked up in the namespace of its user, so nothing has to allow
        # it.
        is_allowed = namespace is None or kind.resource.namespaced
        if not (is_allowed or self._allows(identity, namespace or "")):
            allowed = f"namespace {namespace}" if namespace else "all namespaces"
            message = f"identity {name} does not allow {allowed}"
            return _waiting(constants.REASON_IDENTITY_NOT_ALLOWED, message)
        return _Link(kind, identity)

    async def of_identity(self, kind: IdentityKind, identity: JSON) -> Credentials | Waiting:
        """Return an identity's spec, its sources, and the content of all Secrets.

        The namespaces that the sources allow are checked only for a namespaced identity: the users
        of a cluster-scoped identity may be in any namespace.
        """
        namespace = metadata.namespace(identity) if kind.resource.namespaced else None
        return await self._of_chain(_Link(kind, identity), namespace)

    async def _of_chain(self, first: _Link, namespace: str | None) -> Credentials | Waiting:
        """Return the credentials of an identity that an object in ``namespace`` uses."""
        chain = self._find_chain(first, namespace)
        if isinstance(chain, Waiting):
            return chain
        credentials: Credentials | None = None
        for kind, identity in reversed(chain):
            secret = await self._read_secret(kind, identity) if kind.refers_to_secret else {}
            if isinstance(secret, Waiting):
                return secret
            credentials = Credentials(
                secret,
                str(key_of(identity)),
                kind=kind.resource.kind,
                spec=_authors_fields(kind, identity),
                source=credentials,
            )
        assert credentials is not None
        return credentials

    def _find_chain(self, first: _Link, namespace: str | None) -> list[_Link] | Waiting:
        """Return an identity, the one from which it is derived, the source of that one, etc.

        Each of them has to allow ``namespace``.
        """
        chain = [first]
        while reference := references.read_source(*chain[-1]):
            kind, identity = chain[-1]
            kinds = kind.select_sources(self._caches.kinds)
            field = references.SOURCE_REF
            found = self._find(reference, kinds, identity, field=field, namespace=namespace)
            if isinstance(found, Waiting):
                message = f"{found.message} (source of {chain[-1]})"
                return _waiting(found.reason, message)
            names = [str(each) for each in (*chain, found)]
            if str(found) in names[:-1]:
                message = f"identities are derived from each other: {', '.join(names)}"
                return _waiting(constants.REASON_IDENTITY_CHAIN_INVALID, message)
            if len(names) > MAX_CHAIN:
                message = f"more than {MAX_CHAIN} identities are derived from one another"
                return _waiting(constants.REASON_IDENTITY_CHAIN_INVALID, message)
            chain.append(found)
        return chain

    async def _read_secret(self, kind: IdentityKind, identity: JSON) -> Mapping[str, str] | Waiting:
        key = self._secret_key(kind, identity)
        where = f"{key.namespace}/{key.name}"
        try:
            credentials = await self._caches.secrets.read(key, namespaced=kind.resource.namespaced)
        except ValueError:
            message = f"Secret {where} contains data that is not text"
            return _waiting(constants.REASON_SECRET_INCOMPLETE, message)
        if credentials is None:
            return _waiting(constants.REASON_SECRET_NOT_FOUND, f"Secret {where} does not exist")
        missing = [name for name in kind.keys if not credentials.get(name)]
        if missing:
            message = f"Secret {where} lacks {', '.join(missing)}"
            return _waiting(constants.REASON_SECRET_INCOMPLETE, message)
        return credentials

    def secret_of(self, kind: IdentityKind, identity: JSON) -> JSON | None:
        """Return the metadata of an identity's Secret, or None if the Secret does not exist."""
        key = self._secret_key(kind, identity)
        return self._caches.secrets.find(key, namespaced=kind.resource.namespaced)

    def _secret_key(self, kind: IdentityKind, identity: JSON) -> NamespacedName:
        namespaced = kind.resource.namespaced
        namespace = metadata.namespace(identity) if namespaced else self._own_namespace
        return NamespacedName(namespace, metadata.text(identity, "spec", "secretRef", "name"))

    def _allows(self, identity: JSON, namespace: str) -> bool:
        """Return whether ``identity`` allows use from ``namespace``.

        Without ``spec.allowedNamespaces`` it allows no namespace, with an empty one it allows all.
        An empty ``namespace`` denotes a cluster-scoped user, which requires an identity that allows
        all.
        """
        allowed = metadata.lookup(identity, "spec", "allowedNamespaces")
        if not isinstance(allowed, Mapping):
            return False
        if not allowed:
            return True
        if namespace in metadata.items(allowed, "list"):
            return True
        labels = self._caches.find_namespace_labels(namespace)
        chosen = allowed.get("selector")
        return (
            isinstance(chosen, Mapping)
            and labels is not None
            and metadata.is_selected(chosen, labels)
        )


def _authors_fields(kind: IdentityKind, identity: JSON) -> dict[str, Any]:
    """Return the spec fields that the author's code reads.

    Changes to other fields do not end a session.
    """
    spec = metadata.mapping(identity, "spec")
    # Without sources, the author may have a field of this name.
    others = (*_CONTRACT_FIELDS, *((references.SOURCE_REF,) if kind.sources else ()))
    return {key: value for key, value in spec.items() if key not in others}


def _waiting(reason: str, message: str) -> Waiting:
    return Waiting(reason, message, requeue_after=None)
