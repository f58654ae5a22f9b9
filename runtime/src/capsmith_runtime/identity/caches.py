"""Caches for identities, the namespaces that they allow, their Secrets and their users."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.contract.records import Record
from capsmith_runtime.identity import references
from capsmith_runtime.identity.chains import IdentityChains
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.identity.references import MAX_CHAIN, split_value
from capsmith_runtime.identity.secrets import IdentitySecrets
from capsmith_runtime.kube.client import JSON, Selection
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import BY_SECRET, Caches
from capsmith_runtime.reconcile.kinds import NAMESPACE
from capsmith_runtime.reconcile.results import Waiting

BY_IDENTITY: Final = "identity"
BY_USED_IDENTITY: Final = "usedIdentity"
"""Index of the objects that have used an identity, with the same keys as BY_IDENTITY.

Any user may create objects that name an identity, whether it allows their namespace or not.
"""
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
        self.chains = IdentityChains(kinds, self.identities, self.namespaces)
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

    def add_user(self, informer: Informer, *, is_recorded: bool) -> None:
        """Register and index a kind that uses identities; call this before its informer runs.

        ``is_recorded`` is true if the kind's objects use the identity of their cluster by default.
        """
        find_keys = self.find_member_keys if is_recorded else self.find_keys
        informer.add_index(BY_IDENTITY, find_keys)
        informer.add_index(BY_USED_IDENTITY, self._find_used_keys)
        (self.recorded_users if is_recorded else self.users).append(informer)

    def find_override(self, obj: JSON) -> Object:
        """Return the reference that overrides the cluster's identity, or {} if there is none."""
        return references.read_reference(obj) if obj["kind"] in self.overriding else {}

    def build_record(self, obj: JSON, cluster: Cluster) -> Mapping[Record, str]:
        """Return the records of the identity that an object of a Cluster uses, and its sources.

        The mapping is empty if there are no identities, if the identity is not known yet, or if it
        does not allow the object's namespace: the object has not used it.
        """
        reference = (self.find_override(obj) or self.find_default(cluster)) if self.kinds else None
        if reference is None or isinstance(reference, Waiting):
            return {}
        return self._build_record(obj, reference) or {}

    def build_own_record(self, obj: JSON) -> Mapping[Record, str]:
        """Return the records of the identity that an object names, and of its sources.

        If the identity cannot be used, a new object records that it has used none.
        """
        if not self.kinds:
            return {}
        record = self._build_record(obj, references.read_reference(obj))
        if record is not None:
            return record
        # An object without record that is not new may have used its identity: older releases
        # recorded none.
        return {} if has_external_id(obj) else references.create_record(obj, ())

    def _build_record(self, obj: JSON, reference: Object) -> Mapping[Record, str] | None:
        """Return the records of an identity, or None if it cannot be used."""
        if not metadata.text(reference, "name"):
            return references.create_record(obj, ())
        links = self.chains.find(reference, obj)
        if isinstance(links, Waiting):
            return None
        names = [(kind.resource.kind, metadata.name(each)) for kind, each in links]
        return references.create_record(obj, names)

    def find_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities that an object names or has used."""
        if not self.kinds:
            return
        own = references.find_keys(self.kinds, references.read_reference(obj), obj)
        yield from dict.fromkeys(chain(own, self._find_recorded_chain(obj)))

    def find_member_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities of an object of a Cluster.

        They are those that it names or has used, and their sources.
        """
        if not self.kinds:
            return
        recorded = self.find_recorded_keys(obj)
        yield from dict.fromkeys(chain(recorded, self._find_recorded_chain(obj)))

    def find_recorded_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities that an object uses or has recorded.

        The infrastructure cluster, which names the identity, may be gone before the object.
        """
        found = (self.find_override(obj), references.read_record(obj) or {})
        # The record usually repeats the override; callers that count objects by key must see a key
        # once.
        keys = (references.find_keys(self.kinds, reference, obj) for reference in found)
        yield from dict.fromkeys(chain.from_iterable(keys))

    def find_all_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of an object of any kind."""
        return chain(self.find_keys(obj), self.find_recorded_keys(obj))

    def _find_used_keys(self, obj: JSON) -> Iterable[str]:
        """Yield the BY_USED_IDENTITY index keys of the identities that an object has used."""
        if not self.kinds:
            return
        used = self._find_recorded_chain(obj)
        # The manager records an identity together with the external id since it is known which
        # identities objects may use; an object of an older release has only the id.
        if references.read_record(obj) is None and has_external_id(obj):
            reference = self.find_override(obj) or references.read_reference(obj)
            used = chain(used, references.find_keys(self.kinds, reference, obj))
        yield from dict.fromkeys(used)

    def _find_recorded_chain(self, obj: JSON) -> Iterator[str]:
        """Yield the keys of the recorded identity and its sources, any of which may be missing."""
        for reference in (references.read_record(obj) or {}, *references.read_sources_record(obj)):
            yield from references.find_keys(self.kinds, reference, obj)

    def find_source_keys(self, identity: JSON) -> Iterable[str]:
        """Yield the BY_IDENTITY index keys of the identities from which another one is derived."""
        return references.find_source_keys(self.kinds, identity)

    def find_chain(self, identity: str) -> list[str]:
        """Return the index keys of an identity and its direct and indirect sources.

        Of more than any chain can have, only some are returned.
        """

        def find_sources(value: str) -> Iterable[str]:
            kind, key = split_value(value)
            obj = self.identities[kind].get(key)
            return self.find_source_keys(obj) if obj is not None else ()

        return _collect(identity, find_sources, most=MAX_CHAIN**2)

    def find_derived(self, identity: str) -> list[str]:
        """Return the index keys of an identity and those derived from it, if any can use it."""

        def find_next(value: str) -> Iterable[str]:
            for kind, informer in self.identities.items():
                for key in informer.keys_by_index(BY_SOURCE, value):
                    yield references.identity_value(kind, key)

        return _collect(identity, find_next)

    def find_kinds_using(self, identity: str) -> list[str]:
        """Return the kinds of all objects that use ``identity``, a BY_IDENTITY index key.

        An object also uses the identities from which its own is derived.  An object that names an
        identity uses it only if all identities of the chain allow its namespace, or if it has used
        the identity before: otherwise any user could keep the identities of others.
        """
        informers = (*self.users, *self.recorded_users)
        values = self.find_derived(identity)
        return sorted(
            {
                informer.resource.kind
                for informer in informers
                for value in values
                if self._is_used(informer, value)
            }
        )

    def _is_used(self, informer: Informer, value: str) -> bool:
        """Return whether an object of one kind uses the identity with this index key."""
        if len(informer.by_index(BY_USED_IDENTITY, value)):
            return True
        # Only the namespaces of the objects matter.  The objects are not decoded: users can create
        # any number of objects that name an identity, and each of them leads to a reconcile.
        kind, key = split_value(value)
        keys = informer.keys_by_index(BY_IDENTITY, value)
        return any(
            not isinstance(self.chains.find_in(namespace, kind, key.name), Waiting)
            for namespace in {each.namespace for each in keys}
        )

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers of identities, Secrets and namespaces; the manager must run them."""
        return (
            *self.identities.values(),
            *self.secrets.informers.values(),
            *((self.namespaces,) if self.namespaces is not None else ()),
        )


def _collect(
    start: str, find_next: Callable[[str], Iterable[str]], *, most: int | None = None
) -> list[str]:
    """Return ``start`` and what follows from it in at most MAX_CHAIN steps, each once.

    There may be cycles.  ``most`` limits the length of the result.
    """
    found, latest = {start: None}, [start]
    # Users may derive thousands of identities from each other, of which none can be used.
    for _ in range(MAX_CHAIN):
        following = dict.fromkeys(chain.from_iterable(map(find_next, latest)))
        latest = [value for value in following if value not in found]
        if most is not None:
            latest = latest[: most - len(found)]
        found |= dict.fromkeys(latest)
    return list(found)


def has_external_id(obj: JSON) -> bool:
    """Return whether a manager has reconciled ``obj``; users cannot write its external id."""
    return external_id.stored(obj, metadata.text(obj, "apiVersion").partition("/")[0]) is not None


def secret_value(namespace: str, name: str) -> str:
    """Return the BY_SECRET index key of a Secret.

    ``namespace`` is empty if the identity that names the Secret is cluster-scoped.
    """
    return f"{namespace}/{name}"


def _secret_key(obj: JSON) -> Iterable[str]:
    name = metadata.text(obj, "spec", "secretRef", "name")
    if name:
        yield secret_value(metadata.namespace(obj), name)
