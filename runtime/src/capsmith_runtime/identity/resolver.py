"""Finds the credentials of the identity that an object uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from capsmith_runtime.contract import constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.identity import references
from capsmith_runtime.identity.caches import IdentityCaches
from capsmith_runtime.identity.chains import Link, create_waiting
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, key_of
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials

_CONTRACT_FIELDS: Final = ("secretRef", "allowedNamespaces")


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
            return create_waiting(
                constants.REASON_IDENTITY_NOT_FOUND, "the infrastructure cluster is gone"
            )
        return await self._of_reference(record, machine)

    async def _of_reference(self, reference: Object, user: JSON) -> Credentials | Waiting:
        if not self._caches.kinds or not metadata.text(reference, "name"):
            return Credentials()
        return await self._of_chain(self._caches.chains.find(reference, user))

    async def of_identity(self, kind: IdentityKind, identity: JSON) -> Credentials | Waiting:
        """Return an identity's spec, its sources, and the content of all Secrets.

        The namespaces that the sources allow are checked only for a namespaced identity: the users
        of a cluster-scoped identity may be in any namespace.
        """
        namespace = metadata.namespace(identity) if kind.resource.namespaced else None
        chain = self._caches.chains.find_sources(Link(kind, identity), namespace)
        return await self._of_chain(chain)

    async def _of_chain(self, chain: Sequence[Link] | Waiting) -> Credentials | Waiting:
        """Return the credentials of the first identity of a chain."""
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

    async def _read_secret(self, kind: IdentityKind, identity: JSON) -> Mapping[str, str] | Waiting:
        key = self._secret_key(kind, identity)
        where = f"{key.namespace}/{key.name}"
        try:
            credentials = await self._caches.secrets.read(key, namespaced=kind.resource.namespaced)
        except ValueError:
            message = f"Secret {where} contains data that is not text"
            return create_waiting(constants.REASON_SECRET_INCOMPLETE, message)
        if credentials is None:
            return create_waiting(
                constants.REASON_SECRET_NOT_FOUND, f"Secret {where} does not exist"
            )
        missing = [name for name in kind.keys if not credentials.get(name)]
        if missing:
            message = f"Secret {where} lacks {', '.join(missing)}"
            return create_waiting(constants.REASON_SECRET_INCOMPLETE, message)
        return credentials

    def secret_of(self, kind: IdentityKind, identity: JSON) -> JSON | None:
        """Return the metadata of an identity's Secret, or None if the Secret does not exist."""
        key = self._secret_key(kind, identity)
        return self._caches.secrets.find(key, namespaced=kind.resource.namespaced)

    def _secret_key(self, kind: IdentityKind, identity: JSON) -> NamespacedName:
        namespaced = kind.resource.namespaced
        namespace = metadata.namespace(identity) if namespaced else self._own_namespace
        return NamespacedName(namespace, metadata.text(identity, "spec", "secretRef", "name"))


def _authors_fields(kind: IdentityKind, identity: JSON) -> dict[str, Any]:
    """Return the spec fields that the author's code reads.

    Changes to other fields do not end a session.
    """
    spec = metadata.mapping(identity, "spec")
    # Without sources, the author may have a field of this name.
    others = (*_CONTRACT_FIELDS, *((references.SOURCE_REF,) if kind.sources else ()))
    return {key: value for key, value in spec.items() if key not in others}
