"""A manager's runtime extension: its registration, and a server for its hooks on all replicas."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from capsmith_runtime.contract.constants import WATCH_FILTER_LABEL
from capsmith_runtime.errors import ApiError, ForbiddenError, NotFoundError
from capsmith_runtime.extension.dispatch import MAX_BODY_BYTES, Dispatcher, Handler
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.groups import ControllerGroup, Runnable
from capsmith_runtime.webhook.options import webhook_options
from capsmith_runtime.webhook.server import LIMITS, CallLimits, WebhookServer

GROUP: Final = "runtime.cluster.x-k8s.io"


ROLE: Final = ResourceType(
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False
)


VERSIONS: Final = ("v1beta2", "v1alpha1")
"""Supported versions of ExtensionConfig, preferred first; the fields written here are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The names under which a manager registers its runtime extension with core."""

    name: str
    """Name of the ExtensionConfig, which is the second part of each handler's name."""
    label: str
    """The provider's manifest label."""
    service: str
    """Name of the Service for the extension, in the extension's own namespace."""
    role: str
    """Name of the manager's ClusterRole, which owns the ExtensionConfig."""
    url: str = ""
    """URL of an extension that runs outside the cluster, or an empty string to use the Service."""


class NotServedError(Exception):
    """Raised if the API server serves no ExtensionConfigs: Cluster API is not installed yet."""


async def register(
    client: KubeClient, registration: Registration, scope: WatchScope, ca_bundle: bytes
) -> str:
    """Apply the ExtensionConfig with the CA bundle, and return the API version that was used.

    Fields that users set, such as settings or a namespace selector, are kept. Raises
    NotServedError, or ApiError if a request fails.
    """
    version = await find_served_version(client)
    resource = ResourceType(GROUP, version, "ExtensionConfig", "extensionconfigs", namespaced=False)
    config = build_extension_config(registration, scope, ca_bundle, resource.api_version)
    owner = await _owner_reference(client, registration.role)
    if owner is not None:
        config["metadata"]["ownerReferences"] = [owner]
    # Forced: if another writer has changed these fields, core cannot reach the extension.
    await client.apply(resource, config, force=True)
    return version


async def find_served_version(client: KubeClient) -> str:
    """Return the newest supported version of ExtensionConfig that the API server serves.

    Raises NotServedError if there is none, or ApiError if the request fails.
    """
    served = await client.served_versions(GROUP)
    for version in VERSIONS:
        if version in served:
            return version
    raise NotServedError(f"{GROUP} is not served in any of {', '.join(VERSIONS)}")


def build_extension_config(
    registration: Registration, scope: WatchScope, ca_bundle: bytes, api_version: str
) -> JSON:
    """Create the ExtensionConfig with which core finds and trusts the extension.

    ``ca_bundle`` may be empty if core already trusts the issuer. The watch filter and the namespace
    of ``scope`` limit the Clusters for which core calls the extension.
    """
    service = {"namespace": scope.own_namespace, "name": registration.service}
    client: JSON = {"url": registration.url} if registration.url else {"service": service}
    # Without a bundle, core trusts the issuer of the certificate already.
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    labels = {"cluster.x-k8s.io/provider": registration.label}
    if scope.watch_filter:
        labels[WATCH_FILTER_LABEL] = scope.watch_filter
    spec: JSON = {"clientConfig": client}
    # Core would otherwise call this extension for Clusters that the manager cannot even read.
    if selector := _namespace_selector(scope):
        spec["namespaceSelector"] = selector
    return {
        "apiVersion": api_version,
        "kind": "ExtensionConfig",
        "metadata": {"name": registration.name, "labels": labels},
        "spec": spec,
    }


def _namespace_selector(scope: WatchScope) -> JSON:
    """Return the selector of the namespaces in scope, or an empty object if all are."""
    label = "kubernetes.io/metadata.name"
    if len(scope.namespaces) == 1:
        return {"matchLabels": {label: scope.namespaces[0]}}
    lists = (("In", scope.namespaces), ("NotIn", scope.excluded_namespaces))
    expressions = [
        {"key": label, "operator": operator, "values": list(names)}
        for operator, names in lists
        if names
    ]
    return {"matchExpressions": expressions} if expressions else {}


async def _owner_reference(client: KubeClient, name: str) -> JSON | None:
    """Return the owner reference to a ClusterRole, or None if the ClusterRole does not exist.

    An extension that runs outside the cluster has none.
    """
    try:
        role = await client.get(ROLE, NamespacedName("", name))
    # Outside the cluster, the manager's role may have another name, and the manager may not be
    # allowed to read it.
    except (NotFoundError, ForbiddenError):
        return None
    uid = role["metadata"]["uid"]
    return {"apiVersion": ROLE.api_version, "kind": ROLE.kind, "name": name, "uid": uid}


_log = get_logger("extension")

RETRY_SECONDS: Final = 10.0
RENEW_SECONDS: Final = 60.0
"""Seconds between two registrations, which also recreate a deleted ExtensionConfig."""
_OLD_VERSION: Final = "v1alpha1"
_LIMITS: Final = replace(LIMITS, body_bytes=MAX_BODY_BYTES)


@dataclass(frozen=True, kw_only=True)
class RuntimeExtensionServer:
    """Factory for a runtime extension's server, with the settings from the wiring module."""

    extension: Callable[[], object]
    """The class with the hook methods."""
    handlers: tuple[Handler, ...]
    registration: Registration

    def __call__(self, caches: Caches, context: ControllerContext) -> RuntimeExtensionGroup:
        """Create the server for one manager."""
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
        """Return the port that the server listens on, or 0 if it is not listening."""
        return self._server.port

    @property
    def ready(self) -> bool:
        """Return whether the server is listening."""
        return self._server.ready

    async def drain(self) -> None:
        """Keep serving until clients have been redirected to another process."""
        await self._server.drain()

    @property
    def healthy(self) -> bool:
        """Return whether each hook still has a usable thread.

        A thread that has been hanging for minutes is not usable.
        """
        return self._dispatcher is None or self._dispatcher.is_healthy

    @property
    def runnables(self) -> Sequence[Runnable]:
        """Return the server, which runs until the process exits."""
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
                # Registered after each new certificate, because core trusts only the bundle in the
                # ExtensionConfig.
                await self._server.watch_certificate(await self._register())

    async def _supported_handlers(self) -> list[Handler]:
        """Return the handlers of the hooks that core knows.

        A single unknown hook would make core reject all of them (RX-04).
        """
        while True:
            try:
                version = await find_served_version(self._caches.client)
                break
            except (ApiError, NotServedError) as error:
                _log.warning("cannot start yet", error=str(error))
            await asyncio.sleep(RETRY_SECONDS)
        # Versions of core that serve only v1alpha1 do not know the newer hooks.
        if version != _OLD_VERSION:
            return list(self._handlers)
        for handler in self._handlers:
            if handler.since_v1beta2:
                _log.warning("core is too old for a hook", hook=handler.hook)
        return [handler for handler in self._handlers if not handler.since_v1beta2]

    async def _register(self) -> float:
        """Apply the ExtensionConfig, and return the seconds until the next registration."""
        client, name = self._caches.client, self._registration.name
        try:
            await register(client, self._registration, self._caches.scope, self._server.ca_bundle)
        except (ApiError, NotServedError) as error:
            # Core's admission also rejects it while the feature gate RuntimeSDK is off.
            _log.warning("cannot register", name=name, error=str(error))
            return RETRY_SECONDS
        _log.debug("registered", name=name)
        return RENEW_SECONDS
