"""Credentials for one kind's objects, read from the manager group that serves identities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.records import Record
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.reconcile.groups import ControllerGroup, CredentialsSource
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE, Kind
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import Credentials


class ObjectCredentials:
    """Reads credentials for one kind's objects; they are empty if the kind lacks the feature."""

    def __init__(self, kind: Kind[Any]) -> None:
        self.is_used = CREDENTIALS_FEATURE in kind.features
        """Whether the kind has ``spec.identityRef``."""
        self._source: CredentialsSource | None = None

    def connect(
        self,
        groups: Sequence[ControllerGroup],
        informer: Informer,
        enqueue: Callable[[JSON], None] | None = None,
        *,
        has_default: bool = False,
    ) -> None:
        """Find the group that serves identities; see :meth:`.CredentialsSource.add_users`."""
        sources = [group.credentials for group in groups if group.credentials is not None]
        if self.is_used and sources:
            self._source = sources[0]
            self._source.add_users(informer, enqueue, has_default=has_default)

    async def read(self, obj: JSON) -> Credentials | Waiting:
        """Return the credentials of the identity that an object refers to."""
        return Credentials() if self._source is None else await self._source.read(obj)

    async def read_of_member(self, obj: JSON, cluster: Cluster | None) -> Credentials | Waiting:
        """Return the credentials of an object's own identity, or else its Cluster's."""
        if self._source is None:
            return Credentials()
        return await self._source.read_of_member(obj, cluster)

    def build_record(self, obj: JSON, cluster: Cluster) -> Mapping[Record, str]:
        """Return the records of the identity that an object of a Cluster uses, if it is known."""
        return {} if self._source is None else self._source.build_record(obj, cluster)

    def build_own_record(self, obj: JSON) -> Mapping[Record, str]:
        """Return the records of the identity that an object names."""
        return {} if self._source is None else self._source.build_own_record(obj)
