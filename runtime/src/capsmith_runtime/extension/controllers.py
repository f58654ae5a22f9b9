"""The runtime extension of a manager, which serves hooks on the leader and on all replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from capsmith_runtime.errors import ApiError
from capsmith_runtime.extension.dispatch import Dispatcher, Handler
from capsmith_runtime.extension.registration import (
    NotServedError,
    Registration,
    find_served_version,
    register,
)
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.caches import Caches
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable
from capsmith_runtime.webhook.options import webhook_options
from capsmith_runtime.webhook.server import LIMITS, CallLimits, WebhookServer

_log = get_logger("extension")

RETRY_SECONDS: Final = 10.0
RENEW_SECONDS: Final = 60.0
"""Between two registrations: an ExtensionConfig that was deleted comes back."""
_OLD_VERSION: Final = "v1alpha1"
_LIMITS: Final = replace(LIMITS, body_bytes=16 * 1024 * 1024)
"""Large topologies make requests of some megabytes: each template with its variables."""


@dataclass(frozen=True, kw_only=True)
class RuntimeExtensionServer:
    """Factory of the server of a runtime extension, with the settings of the wiring module."""

    extension: Callable[[], object]
    """The class with the hook methods."""
    handlers: tuple[Handler, ...]
    registration: Registration

    def __call__(self, caches: Caches, context: ControllerContext) -> RuntimeExtensionGroup:
        """Return the controllers for one manager."""
        return RuntimeExtensionGroup(self, caches, context)


class RuntimeExtensionGroup(ControllerGroup):
    """Serves the hooks and keeps the ExtensionConfig up to date."""

    def __init__(
        self, settings: RuntimeExtensionServer, caches: Caches, context: ControllerContext
    ) -> None:
        options = webhook_options(context.options)
        self._handlers = settings.handlers
        self._extension = settings.extension()
        self._registration = replace(settings.registration, url=options.url)
        self._caches = caches
        self._threads = context.options.hook_threads
        self._server = WebhookServer(options, caches.metrics, _LIMITS)
        self._dispatcher: Dispatcher | None = None

    @property
    def port(self) -> int:
        """The port on which the server listens; 0 while it does not listen."""
        return self._server.port

    @property
    def ready(self) -> bool:
        """Whether the server is listening."""
        return self._server.ready

    async def drain(self) -> None:
        """Serve until clients have been redirected."""
        await self._server.drain()

    @property
    def healthy(self) -> bool:
        """Whether each hook still has a thread that has not been hanging for minutes."""
        return self._dispatcher is None or self._dispatcher.is_healthy

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the server, which runs until the process ends."""
        return (self._serve,)

    async def _serve(self) -> None:
        handlers = await self._supported_handlers()
        self._dispatcher = Dispatcher(
            self._extension, handlers, self._caches.metrics, threads=self._threads
        )
        calls = CallLimits(paths=len(handlers))
        handle = partial(calls.call, self._dispatcher.handle)
        async with self._server.listening(handle):
            hooks = ", ".join(handler.hook for handler in handlers)
            _log.info("serving", port=self.port, hooks=hooks)
            while True:
                await self._server.watch_certificate(await self._register())

    async def _supported_handlers(self) -> list[Handler]:
        """Return handlers of hooks that core knows: one unknown makes it refuse all (RX-04)."""
        while True:
            try:
                version = await find_served_version(self._caches.client)
                break
            except (ApiError, NotServedError) as error:
                _log.warning("cannot start yet", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        if version != _OLD_VERSION:
            return list(self._handlers)
        for handler in self._handlers:
            if handler.since_v1beta2:
                _log.warning("core is too old for a hook", hook=handler.hook)
        return [handler for handler in self._handlers if not handler.since_v1beta2]

    async def _register(self) -> float:
        """Apply the ExtensionConfig; return the seconds until the next time."""
        client, name = self._caches.client, self._registration.name
        try:
            await register(client, self._registration, self._caches.scope, self._server.ca_bundle)
        except (ApiError, NotServedError) as error:
            # Core's admission also refuses it while the feature gate RuntimeSDK is off.
            _log.warning("cannot register", name=name, error=str(error))
            return RETRY_SECONDS
        _log.debug("registered", name=name)
        return RENEW_SECONDS
