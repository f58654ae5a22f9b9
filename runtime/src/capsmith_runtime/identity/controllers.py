"""A manager's identity controllers, and the source of credentials for all of its groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.records import Record
from capsmith_runtime.identity.caches import IdentityCaches
from capsmith_runtime.identity.controller import IdentityController
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.identity.resolver import CredentialsResolver
from capsmith_runtime.identity.watches import IdentityWatches
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, CredentialsSource, Queues, Reconcile
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials


class IdentityControllers:
    """Factory for the identity controllers of a provider without infrastructure."""

    def __init__(self, identities: Sequence[IdentityKind]) -> None:
        self.identities = tuple(identities)

    def __call__(self, caches: Caches, context: ControllerContext) -> ControllerGroup:
        """Create the controllers for one manager."""
        identity = IdentityCaches(caches, self.identities)
        return IdentityGroup(identity, CredentialsResolver(identity), context)


class IdentityGroup(ControllerGroup):
    """A controller for each kind of identity; other groups read credentials through it."""

    def __init__(
        self, caches: IdentityCaches, resolver: CredentialsResolver, context: ControllerContext
    ) -> None:
        self._caches = caches
        self._resolver = resolver
        self._context = context

    @property
    def informers(self) -> Sequence[Informer]:
        """Return the informers for identities, Secrets and namespaces."""
        return self._caches.informers

    @property
    def credentials(self) -> CredentialsSource | None:
        """Return the source of credentials, or None if there are no kinds of identities."""
        return self if self._caches.kinds else None

    def add_users(
        self,
        informer: Informer,
        enqueue: Callable[[JSON], None] | None = None,
        *,
        has_default: bool = False,
    ) -> None:
        """Register a kind with ``spec.identityRef``; see :class:`.CredentialsSource`."""
        caches, kind = self._caches, informer.resource.kind
        if has_default:
            caches.overriding.add(kind)
        caches.add_user(informer, is_recorded=has_default)
        if enqueue is not None:
            caches.enqueuers[kind] = enqueue

    async def read(self, obj: JSON) -> Credentials | Waiting:
        """Return the credentials of the identity that an object refers to."""
        return await self._resolver.of_object(obj)

    async def read_of_member(self, obj: JSON, cluster: Cluster | None) -> Credentials | Waiting:
        """Return the credentials of an object's own identity, or else its Cluster's."""
        return await self._resolver.of_member(obj, cluster)

    def build_record(self, obj: JSON, cluster: Cluster) -> Mapping[Record, str]:
        """Return the records of the identity that an object of a Cluster uses, if it is known."""
        return self._caches.build_record(obj, cluster)

    def build_own_record(self, obj: JSON) -> Mapping[Record, str]:
        """Return the records of the identity that an object names."""
        return self._caches.build_own_record(obj)

    def reconcilers(self) -> Iterator[tuple[str, Reconcile]]:
        """Yield each kind's name and reconcile function."""
        for kind in self._caches.kinds:
            controller = IdentityController(kind, self._caches, self._resolver, self._context)
            yield kind.resource.kind, controller.reconcile

    def setup_watches(self, queues: Queues) -> None:
        """Watch identities, their Secrets, the namespaces that they allow, and their users."""
        IdentityWatches(self._caches, queues).setup()
