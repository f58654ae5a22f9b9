"""Gives validators objects outside the request: the Cluster, and others through a client.

Nothing here writes: webhooks without side effects are called in dry runs too.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from capsmith_runtime.admission.api import AdmissionObject
from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.errors import InvalidRequestError, KubernetesError
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.caches import Caches, cluster_name_of
from capsmith_runtime.reconcile.kubernetes_client import (
    ClientSession,
    KubernetesReader,
    create_opener,
    wait_for,
)
from capsmith_runtime.reconcile.permissions import Permissions, create_key

MAX_RESULTS: Final = 100
"""Maximum number of errors and warnings to report, because the author may yield endlessly."""


class RefusingReader(KubernetesReader):
    """The client passed to defaulters; it refuses every read."""

    _missing = "defaulters have no Kubernetes client: defaults depend on the object alone"


class ObjectReads:
    """Gives validators their object's Cluster and a client, for the duration of one call."""

    def __init__(self, caches: Caches, permissions: Permissions) -> None:
        self._caches = caches
        self._permissions = permissions

    @contextmanager
    def open(self, obj: JSON) -> Iterator[CallReads]:
        """Return a context manager that provides access for one call about ``obj``.

        On exit, requests in flight are cancelled, and no further request is sent.
        """
        session = ClientSession(
            create_opener(self._caches.client),
            self._permissions,
            metadata.namespace(obj),
            asyncio.get_running_loop(),
        )
        try:
            yield CallReads(self._caches, obj, session)
        finally:
            session.end()


class CallReads:
    """Gives a single call to a validator its object's Cluster and a client."""

    def __init__(self, caches: Caches, obj: JSON, session: ClientSession) -> None:
        self._caches = caches
        self._obj = obj
        self._session = session

    def connect(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the validator's method so that its objects have the Cluster and a client.

        The Cluster is read within the call, whose time limit then covers the request. Results of a
        ``def`` method are collected in a tuple, so that generators run in its thread.
        """
        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def call_async(*objects: AdmissionObject[Any]) -> Any:
                return await method(*self._connected(objects, await self._read_cluster()))

            return call_async

        @functools.wraps(method)
        def call(*objects: AdmissionObject[Any]) -> Any:
            cluster = wait_for(self._read_cluster, self._session.loop)
            results = method(*self._connected(objects, cluster))
            return results if inspect.isawaitable(results) else tuple(islice(results, MAX_RESULTS))

        return call

    def _connected(
        self, objects: tuple[AdmissionObject[Any], ...], cluster: Cluster | KubernetesError | None
    ) -> list[AdmissionObject[Any]]:
        client = KubernetesReader(self._session)
        return [replace(obj, client=client, _cluster=cluster) for obj in objects]

    async def _read_cluster(self) -> Cluster | KubernetesError | None:
        """Return the Cluster from the cache, or else from the API server.

        The cache lags behind users who create a Cluster and its objects with one command. An error
        is returned: only validators that use the Cluster depend on it.
        """
        namespace, name = metadata.namespace(self._obj), cluster_name_of(self._obj)
        cached = self._caches.cluster(namespace, name)
        if cached is not None or not name:
            return cached
        try:
            # The API server accepts any name in an owner reference, also one that changes the URL.
            create_key(self._caches.clusters.resource, namespace, name)
        except InvalidRequestError:
            return None
        try:
            return await self._session.send(
                f"get Cluster {namespace}/{name}",
                lambda _: self._caches.live_cluster(namespace, name),
            )
        except KubernetesError as error:
            return error
