"""The requests of one call of a reconciler, which end with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import ApiError, CallEndedError, create_api_error
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.reconcile.permissions import Permissions

T = TypeVar("T")
ClientOpener = Callable[[], Awaitable[KubeClient]]


class Inherited(NamedTuple):
    """Labels that new objects of an API group get from the object that is reconciled."""

    group: str
    labels: Mapping[str, str]


class Owner(NamedTuple):
    """Whose objects a session may change by server-side apply."""

    field_manager: str
    kind: str
    name: str
    uid: str

    def check(self, existing: Object) -> None:
        """Raise AlreadyExists for an object that neither the provider applied nor this one owns.

        ``clusterctl move`` keeps owners, but not field managers.
        """
        managers = metadata.items(existing, "metadata", "managedFields")
        is_applied = any(
            (entry.get("manager"), entry.get("operation")) == (self.field_manager, "Apply")
            for entry in managers
        )
        owners = metadata.items(existing, "metadata", "ownerReferences")
        if not is_applied and self.uid not in [owner.get("uid") for owner in owners]:
            raise create_api_error(
                409,
                "AlreadyExists",
                f"it was not applied by {self.field_manager}, and {self.kind} {self.name} does not"
                " own it; delete it or use another name, or take it over with adopt=True",
            )


class ClientSession:
    """The requests of one call of a reconciler; ``end`` stops them."""

    def __init__(
        self,
        open_client: ClientOpener,
        permissions: Permissions,
        namespace: str,
        loop: asyncio.AbstractEventLoop | None,
        inherited: Inherited | None = None,
        owner: Owner | None = None,
    ) -> None:
        self._open_client = open_client
        self.permissions = permissions
        self.namespace = namespace
        self.loop = loop
        self.inherited = inherited
        self.owner = owner
        """None where any object may be changed."""
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
            raise error.for_request(request) from error
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
