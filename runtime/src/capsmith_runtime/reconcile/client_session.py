"""The requests of one call of a reconciler, which end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from capsmith_runtime.kube.client import ApiError, KubeClient
from capsmith_runtime.reconcile.kubernetes_errors import CallEndedError, kubernetes_error
from capsmith_runtime.reconcile.permissions import Permissions

T = TypeVar("T")
ClientOpener = Callable[[], Awaitable[KubeClient]]


class Inherited(NamedTuple):
    """Labels that new objects of an API group get from the object that is reconciled."""

    group: str
    labels: Mapping[str, str]


class ClientSession:
    """The requests of one call of a reconciler; ``end`` stops them."""

    def __init__(
        self,
        open_client: ClientOpener,
        permissions: Permissions,
        namespace: str,
        loop: asyncio.AbstractEventLoop | None,
        inherited: Inherited | None = None,
    ) -> None:
        self._open_client = open_client
        self.permissions = permissions
        self.namespace = namespace
        self.loop = loop
        self.inherited = inherited
        self.has_ended = False
        self._running: set[asyncio.Task[Any]] = set()

    async def send(self, request: str, send: Callable[[KubeClient], Awaitable[T]]) -> T:
        """Return the response to a request.

        Raises KubernetesError, CallEndedError if the call of the reconciler has ended, and
        NotAvailableError if there is no client yet.
        """
        self._check(request)
        task = asyncio.ensure_future(self._started(send))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        try:
            return await task
        except ApiError as error:
            raise kubernetes_error(request, error) from error
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or not current.cancelling():
                self._check(request)
            raise

    def end(self) -> None:
        """Cancel running requests and refuse further ones; call it on the event loop."""
        self.has_ended = True
        for task in tuple(self._running):
            task.cancel()

    async def _started(self, send: Callable[[KubeClient], Awaitable[T]]) -> T:
        return await send(await self._open_client())

    def _check(self, request: str) -> None:
        if self.has_ended:
            raise CallEndedError(f"{request}: the call of the reconciler has ended")


def always(client: KubeClient) -> ClientOpener:
    """Return an opener for a client that exists."""

    async def opened() -> KubeClient:
        return client

    return opened
