"""Watches for identities: which changes enqueue the objects that use them.

A change to an identity, its Secret or the labels of a namespace enqueues the users of the identity.
An identity's first user and its last one enqueue the identity, which has its finalizer exactly
while it is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.identity.caches import BY_IDENTITY, IdentityCaches, secret_value
from capsmith_runtime.identity.references import identity_value, split_value
from capsmith_runtime.kube.client import JSON, key_of
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import BY_SECRET
from capsmith_runtime.reconcile.groups import Queues
from capsmith_runtime.reconcile.watches import enqueue_object, on_change


class IdentityWatches:
    """Connects the informers for identities, Secrets and users to the work queues."""

    def __init__(self, caches: IdentityCaches, queues: Queues) -> None:
        self._caches = caches
        self._queues = queues

    def setup(self) -> None:
        """Register all event handlers; call this before the informers start."""
        caches = self._caches
        if not caches.identities:
            return
        for kind, informer in caches.identities.items():
            informer.add_handler(enqueue_object(self._queues[kind]), own_writes=False)
            informer.add_handler(on_change(_spec, self._enqueue_users_of_identity))
            informer.add_handler(on_change(_spec, self._enqueue_sources))
            informer.add_handler(partial(self._enqueue_identities, caches.find_source_keys))
        for namespaced, secrets in caches.secrets.informers.items():
            handler = partial(self._enqueue_users_of_secret, namespaced)
            # Writes of finalizers and owners by this process reveal nothing new about a Secret.
            secrets.add_handler(handler, own_writes=False)
        caches.secrets.set_handler(self._enqueue_users_of_new_data)
        if caches.namespaces is not None:
            caches.namespaces.add_handler(
                on_change(metadata.labels, self._enqueue_users_in_namespace)
            )
        for informer in caches.users:
            informer.add_handler(partial(self._enqueue_identities, caches.find_keys))
        for informer in caches.recorded_users:
            informer.add_handler(partial(self._enqueue_identities, caches.find_member_keys))

    def _enqueue_user(self, user: JSON) -> None:
        kind = user["kind"]
        enqueue = self._caches.enqueuers.get(kind)
        if enqueue is not None:
            enqueue(user)
        else:
            self._queues[kind].add(key_of(user))

    def _enqueue_users_of_identity(self, obj: JSON) -> None:
        """Enqueue the users of an identity, and the identities derived from it with their users."""
        first, *derived = self._caches.find_derived(identity_value(obj["kind"], key_of(obj)))
        for value in derived:
            self._enqueue_identity(value)
        for value in (first, *derived):
            for informer in (*self._caches.users, *self._caches.recorded_users):
                for user in informer.by_index(BY_IDENTITY, value):
                    self._enqueue_user(user)

    def _enqueue_sources(self, obj: JSON) -> None:
        """Enqueue the sources of an identity, which are in use if it allows its users."""
        for value in self._caches.find_chain(identity_value(obj["kind"], key_of(obj))):
            self._enqueue_identity(value)

    def _enqueue_identity(self, value: str) -> None:
        kind, key = split_value(value)
        self._queues[kind].add(key)

    def _enqueue_identities(self, keys: Callable[[JSON], Iterable[str]], change: Delta) -> None:
        """Enqueue the identities that an object has started or stopped using, with their sources.

        ``keys`` returns the index keys of the identities that an object uses.
        """
        old, new = (set(keys(obj)) if obj else set() for obj in (change.old, change.new))
        # An identity has its finalizer exactly while it has users, so only the first and last
        # matter.
        for used in old ^ new:
            for value in self._caches.find_chain(used):
                self._enqueue_identity(value)

    def _enqueue_users_of_secret(self, namespaced: bool, change: Delta) -> None:
        """Enqueue the identities that name a Secret, and their users if it was created or deleted.

        Other changes to the Secret are detected when the identity is reconciled.
        """
        for kind, identity in self._identities_of_secret(change.latest, namespaced):
            self._queues[kind].add(key_of(identity))
            if change.old is None or change.new is None:
                self._enqueue_users_of_identity(identity)

    def _enqueue_users_of_new_data(self, secret: JSON) -> None:
        for namespaced in (False, True):
            for kind, identity in self._identities_of_secret(secret, namespaced):
                self._queues[kind].add(key_of(identity))
                self._enqueue_users_of_identity(identity)

    def _identities_of_secret(self, secret: JSON, namespaced: bool) -> Iterator[tuple[str, JSON]]:
        """Yield the identities that name ``secret``, each with its kind.

        ``namespaced`` selects either namespaced or cluster-scoped kinds of identities.
        """
        namespace = metadata.namespace(secret)
        # The Secrets of cluster-scoped identities are always in the manager's own namespace.
        if not namespaced and namespace != self._caches.core.scope.own_namespace:
            return
        value = secret_value(namespace if namespaced else "", metadata.name(secret))
        for kind, identities in self._caches.identities.items():
            if identities.resource.namespaced is namespaced:
                for identity in identities.by_index(BY_SECRET, value):
                    yield kind, identity

    def _enqueue_users_in_namespace(self, obj: JSON) -> None:
        for informer in (*self._caches.users, *self._caches.recorded_users):
            # Namespaces rarely change, so scanning all keys is cheaper than another index.  Reading
            # all objects is not: namespaces of tests come and go.
            for key in informer.keys_in(metadata.name(obj)):
                user = informer.get(key)
                if user is not None:
                    self._enqueue_user(user)
                    for used in self._caches.find_all_keys(user):
                        for value in self._caches.find_chain(used):
                            self._enqueue_identity(value)
        # A namespaced identity may be derived from one that allows namespaces.
        for kind, identities in self._caches.identities.items():
            if identities.resource.namespaced:
                for key in identities.keys_in(metadata.name(obj)):
                    self._queues[kind].add(key)


def _spec(obj: JSON) -> Object:
    return metadata.mapping(obj, "spec")
