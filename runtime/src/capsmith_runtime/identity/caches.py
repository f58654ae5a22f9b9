"""Caches for identities, the namespaces that they allow, their Secrets and their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.identity import references
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.identity.secrets import IdentitySecrets
from capsmith_runtime.kube.client import JSON, NamespacedName, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_SECRET, Caches
from capsmith_runtime.reconcile.kinds import NAMESPACE
from capsmith_runtime.reconcile.results import Waiting

BY_IDENTITY: Final = "identity"
BY_SOURCE: Final = "source"

FindDefault = Callable[[Cluster], Object | Waiting | None]
"""Function that returns a Cluster's infrastructure's reference to an identity.

The reference is empty if it has none.  Returns None if another provider manages the infrastructure,
and Waiting if it does not exist yet.
"""


class IdentityCaches:
    """Caches for identities and their Secrets, and the informers for the kinds that use them."""

    def __init__(self, core: Caches, kinds: Sequence[IdentityKind]) -> None:
        self.core = core
        self.kinds = tuple(kinds)
        scope = core.scope
        # The watch filter applies to objects that refer to identities, not to identities.
        self.identities = {
            kind.resource.kind: core.informer(
                kind.resource,
                scope.select() if kind.resource.namespaced else Selection(),
                {BY_SECRET: _secret_key, BY_SOURCE: self.find_source_keys},
            )
            for kind in kinds
        }
        self.namespaces: Informer | None = None
        # Only cluster-scoped identities select namespaces by label.
        if not all(kind.resource.namespaced for kind in kinds):
            self.namespaces = core.informer(NAMESPACE, Selection())
        self.secrets = IdentitySecrets(core, kinds)
        self.users: list[Informer] = []
        """Informers for the kinds with ``spec.identityRef``, with the index BY_IDENTITY."""
        self.recorded_users: list[Informer] = []
        """Informers for kinds that record the identity of their cluster, also with BY_IDENTITY."""
        self.enqueuers: dict[str, Callable[[JSON], None]] = {}
        """Functions by kind that enqueue a user of an identity; other kinds are enqueued by key."""
        self.overriding: set[str] = set()
        """Kinds of recorded users whose own ``spec.identityRef`` takes precedence."""
        self.find_default: FindDefault = lambda cluster: None

    def find_override(self, obj: JSON) -> Object:
        """Return the reference that overrides the cluster's identity, or {} if there is none."""
        return references.read_reference(obj) if obj["kind"] in self.overriding else {}

    def build_record(self, obj: JSON, cluster: Cluster) -> Mapping[str, str]:
        """Return the annotation with the identity that an object of a Cluster uses.

        The mapping is empty if there are no identities, or if the identity is not known yet.
        """
        reference = (self.find_override(obj) or self.find_default(cluster)) if self.kinds else None
        if reference is None or isinstance(reference, Waiting):
            return {}
        return references.create_record(obj, reference)

    def find_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index key of the identity that an object refers to."""
        return references.find_keys(self.kinds, references.read_reference(obj), obj)

    def find_recorded_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities that an object uses or has recorded.

        The infrastructure cluster, which names the identity, may be gone before the object.
        """
        found = (self.find_override(obj), references.read_record(obj) or {})
        # The record usually repeats the override; callers that count objects by key must see a key
        # once.
        keys = (references.find_keys(self.kinds, reference, obj) for reference in found)
        yield from dict.fromkeys(chain.from_iterable(keys))

    def find_source_keys(self, identity: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities from which another one is derived."""
        return references.find_source_keys(self.kinds, identity)

    def find_chain(self, identity: str) -> list[str]:
        """Return the index keys of an identity and all its direct and indirect sources."""

        def find_sources(value: str) -> Iterable[str]:
            kind, key = references.split_value(value)
            obj = self.identities[kind].get(key)
            return self.find_source_keys(obj) if obj is not None else ()

        return _collect(identity, find_sources)

    def find_derived(self, identity: str) -> list[str]:
        """Return the index keys of an identity and all identities derived from it."""

        def find_next(value: str) -> Iterable[str]:
            for kind, informer in self.identities.items():
                for key in informer.keys_by_index(BY_SOURCE, value):
                    yield references.identity_value(kind, key)

        return _collect(identity, find_next)

    def find_kinds_using(self, identity: str) -> list[str]:
        """Return the kinds of all objects that use ``identity``, a BY_IDENTITY index key.

        An object also uses the identities from which its own is derived.
        """
        informers = (*self.users, *self.recorded_users)
        values = self.find_derived(identity)
        return sorted(
            {
                informer.resource.kind
                for informer in informers
                if any(informer.keys_by_index(BY_IDENTITY, value) for value in values)
            }
        )

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers of identities, Secrets and namespaces; the manager must run them."""
        return (
            *self.identities.values(),
            *self.secrets.informers.values(),
            *((self.namespaces,) if self.namespaces is not None else ()),
        )

    def find_namespace_labels(self, namespace: str) -> Mapping[str, str] | None:
        """Return the labels of a namespace, or None if it is not cached."""
        obj = self.namespaces.get(NamespacedName("", namespace)) if self.namespaces else None
        return metadata.labels(obj) if obj is not None else None


def _collect(start: str, find_next: Callable[[str], Iterable[str]]) -> list[str]:
    """Return ``start`` and all that follows from it, each once; there may be cycles."""
    found, pending = {start: None}, [start]
    while pending:
        for value in find_next(pending.pop()):
            if value not in found:
                found[value] = None
                pending.append(value)
    return list(found)


def secret_value(namespace: str, name: str) -> str:
    """Return the BY_SECRET index key of a Secret.

    ``namespace`` is empty if the identity that names the Secret is cluster-scoped.
    """
    return f"{namespace}/{name}"


def _secret_key(obj: JSON) -> Iterable[str]:
    name = metadata.text(obj, "spec", "secretRef", "name")
    if name:
        yield secret_value(metadata.namespace(obj), name)
