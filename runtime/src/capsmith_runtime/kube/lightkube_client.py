"""A KubeClient based on lightkube's configuration, credentials, TLS and HTTP client.

Requests use the HTTP client directly.  lightkube's own watch has neither bookmarks nor a read
timeout, and splits lines at characters that JSON allows in strings; its errors assume that every
response is JSON.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Final
from urllib.parse import urlencode

import httpx2
import msgspec
from lightkube import ConfigError, SingleConfig
from prometheus_client import Counter

from capsmith_runtime.errors import ApiError, NotFoundError, create_api_error
from capsmith_runtime.kube.client import (
    JSON,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
    key_of,
)
from capsmith_runtime.kube.connection import load_config, open_session
from capsmith_runtime.kube.log import get_logger
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.request_limit import RequestLimit
from capsmith_runtime.kube.responses import (
    parse,
    parse_error,
    parse_event,
    parse_object,
    parse_page,
    parse_versions,
)
from capsmith_runtime.kube.tracing import request_span

_log = get_logger("client")
_MERGE = "application/merge-patch+json"
_APPLY = "application/apply-patch+yaml"
_LEASES = "/apis/coordination.k8s.io/"
_CONNECT_SECONDS = 10.0
_RENEW_SECONDS = 5.0
TLS_FAILURES: Final = 3
"""Number of consecutive TLS failures after which the CA certificate is read again.

The CA may have changed.
"""
_FAILURES = (httpx2.HTTPError, httpx2.StreamError, OSError, ConfigError)


class LightkubeClient:
    """Implementation of `KubeClient`; use it on one event loop."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        field_manager: str,
        config: Callable[[], SingleConfig] = load_config,
        request_seconds: float = 30.0,
        silence_seconds: float = 90.0,
        watch_seconds: tuple[float, float] = (300.0, 600.0),
        requests: Counter | None = None,
        limit: RequestLimit | None = None,
        max_response_bytes: int | None = None,
    ) -> None:
        """Prepare a client for the API server that ``config`` returns.

        ``max_response_bytes`` limits the size of a response, and of an event of a watch, from a
        server that is not trusted.
        """
        self._max_response_bytes = max_response_bytes
        self._limit = limit or RequestLimit()
        self._requests = requests or metrics.requests
        self._field_manager = field_manager
        self._config = config
        self._request_seconds = request_seconds
        # Shorter than the time limit of the request, so that a half-open connection is closed
        # cleanly.
        self._connect_seconds = min(_CONNECT_SECONDS, request_seconds / 3)
        # Bookmarks arrive every minute; a watch that is merely quiet is ended by the server's
        # timeout.
        self._silence_seconds = silence_seconds
        self._watch_seconds = watch_seconds
        self._timeout = httpx2.Timeout(request_seconds, connect=self._connect_seconds)
        self._use_session(self._open())
        if requests is None:
            metrics.api_server = self._session.base_url.netloc.decode()
        self._renewed = -_RENEW_SECONDS
        self._tls_failures = 0
        self._retired: set[asyncio.Task[None]] = set()

    @property
    def is_trusted(self) -> bool:
        """Return whether the client and the API server accept each other's certificates.

        Returns False after ``TLS_FAILURES`` consecutive TLS failures, until the server responds
        again.
        """
        return self._tls_failures < TLS_FAILURES

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        """Return one page of a list; see `KubeClient.list_page`."""
        params = {**_selectors(selection), "limit": str(limit) if limit else "", "continue": token}
        path = resource.path(selection.namespace)
        # Without compression, the API server sends a page in hundreds of small chunks, whose
        # parsing takes as long as everything else that is done with the page.
        headers = _headers(selection, "List")
        if self._max_response_bytes is None:
            headers["Accept-Encoding"] = "gzip"
        content = await self._call("list", "GET", path, params, headers=headers)
        read = partial(parse_page, managed_fields=selection.managed_fields)
        return await parse(read, content)

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return one object from the API server; see `KubeClient.get`."""
        return await parse(parse_object, await self._call("get", "GET", resource.object_path(key)))

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """Create an object and return it; see `KubeClient.create`."""
        path = resource.path(obj["metadata"].get("namespace", ""))
        return await parse(
            parse_object, await self._call("create", "POST", path, self._manager(), obj)
        )

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        """Replace an object and return the result; see `KubeClient.update`."""
        path = resource.object_path(key_of(obj))
        return await parse(
            parse_object, await self._call("update", "PUT", path, self._manager(), obj)
        )

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a JSON merge patch and return the object; see `KubeClient.patch`."""
        return await self._patch("patch", resource.object_path(key), body, resource_version)

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        """Apply a JSON merge patch to the status; see `KubeClient.patch_status`."""
        path = resource.object_path(key, "status")
        return await self._patch("patch_status", path, body, resource_version)

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        """Apply an object by server-side apply and return it; see `KubeClient.apply`."""
        path = resource.object_path(key_of(obj))
        params = {**self._manager(), "force": "true" if force else ""}
        return await parse(
            parse_object, await self._call("apply", "PATCH", path, params, obj, _APPLY)
        )

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Request the deletion of an object; see `KubeClient.delete`."""
        # The API server compares the UID itself, so no other object of the same name can be deleted
        # in between.
        body = {"preconditions": {"uid": uid}} if uid else None
        await self._call("delete", "DELETE", resource.object_path(key), body=body)

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of an API group; see `KubeClient.served_versions`."""
        try:
            return await parse(parse_versions, await self._call("get", "GET", f"/apis/{group}"))
        except NotFoundError:
            return ()

    async def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yield the events of a watch; see `KubeClient.watch`."""
        params = {
            **_selectors(selection),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            # Random, as in client-go, so that watches that were started together do not end
            # together.
            "timeoutSeconds": str(round(random.uniform(*self._watch_seconds))),
        }
        path, headers = resource.path(selection.namespace), _headers(selection)
        timeout = httpx2.Timeout(self._connect_seconds, read=self._silence_seconds)
        read = partial(parse_event, managed_fields=selection.managed_fields)
        await self._limit.wait()
        try:
            response = await self._send(
                "watch", "GET", path, params, headers=headers, timeout=timeout
            )
            try:
                self._check_encoding(response)
                # Split only at newlines: JSON in events contains other line separators of Unicode,
                # at which str.splitlines would split.
                rest = b""
                async for chunk in response.aiter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")
                    self._check_size(len(rest))
                    for line in lines:
                        if line:
                            yield await parse(read, line)
            finally:
                await response.aclose()
        except _FAILURES as error:
            raise _unreachable(error) from error

    async def close(self) -> None:
        """Close all connections to the API server."""
        for task in self._retired:
            task.cancel()
        await asyncio.gather(*self._retired, return_exceptions=True)
        await self._session.aclose()

    async def _patch(self, verb: str, path: str, body: JSON, version: str) -> JSON:
        if version:
            metadata = body.get("metadata") or {}
            body = {**body, "metadata": {**metadata, "resourceVersion": version}}
        return await parse(
            parse_object, await self._call(verb, "PATCH", path, self._manager(), body, _MERGE)
        )

    async def _call(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, str] = {},
        body: JSON | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] = {},
    ) -> bytes:
        content = None if body is None else msgspec.json.encode(body)
        if body is not None:
            headers = {"Content-Type": content_type}
        # Requests for the lease never wait: it is lost if it is not renewed in time.
        if not path.startswith(_LEASES):
            await self._limit.wait()
        try:
            async with asyncio.timeout(self._request_seconds):
                response = await self._send(verb, method, path, params, content, headers)
                return await self._read(response)
        except _FAILURES as error:
            raise _unreachable(error) from error

    async def _send(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, str] = {},
        content: bytes | None = None,
        headers: Mapping[str, str] = {},
        *,
        timeout: httpx2.Timeout | None = None,
    ) -> httpx2.Response:
        """Send a request in its own span, and raise the matching ApiError for an error.

        The caller must read the body of the response, or close it.
        """
        with request_span(method, path) as span:
            headers = span.with_trace_context(headers)
            try:
                response = await self._request(
                    verb, method, path, params, content, headers, timeout=timeout
                )
            except ApiError as error:
                span.set_status_code(error.status)
                raise
            span.set_status_code(response.status_code)
            return response

    async def _request(
        self,
        verb: str,
        method: str,
        path: str,
        params: Mapping[str, str],
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        timeout: httpx2.Timeout | None,
    ) -> httpx2.Response:
        """Send a request, and raise the matching ApiError for an error status.

        The request is sent again with new credentials after a 401, or after repeated TLS failures.
        """
        query = urlencode({name: value for name, value in params.items() if value})
        timeout = timeout or self._timeout
        for retry in (False, True):
            session = self._session
            target = f"{path}?{query}" if query else path
            request = self._build_request(method, target, content, headers, timeout)
            try:
                response = await _send_authenticated(session, request)
            except BaseException as error:  # asyncio.timeout cancels the task
                self._requests.labels(verb, "none").inc()
                if not _is_tls_failure(error):
                    raise
                self._tls_failures += 1
                if self.is_trusted or retry or not self._renew(session):
                    raise
                continue
            self._tls_failures = 0
            self._requests.labels(verb, str(response.status_code)).inc()
            if response.status_code < 400:
                return response
            body = await self._read(response)
            # Tokens of ServiceAccounts expire and are replaced on disk, so a 401 may only mean that
            # the old one was sent.
            if response.status_code != 401 or retry or not self._renew(session):
                raise parse_error(response.status_code, response.headers, body)
        raise AssertionError("unreachable")

    def _build_request(
        self,
        method: str,
        target: str,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: httpx2.Timeout,
    ) -> httpx2.Request:
        # The session's own build_request parses and merges each URL several times, which would take
        # a twentieth of the processor time of a reconcile.
        return httpx2.Request(
            method,
            self._base_url + target,
            content=content,
            headers={**self._session_headers, **headers},
            extensions={"timeout": timeout.as_dict()},
        )

    async def _read(self, response: httpx2.Response) -> bytes:
        """Return the body of a response, and release its connection."""
        try:
            self._check_encoding(response)
            parts, size = list[bytes](), 0
            async for part in response.aiter_bytes():
                parts.append(part)
                size += len(part)
                self._check_size(size)
            return b"".join(parts)
        finally:
            await response.aclose()

    def _check_encoding(self, response: httpx2.Response) -> None:
        # A few kilobytes of compressed data may be gigabytes.
        if self._max_response_bytes is not None and "Content-Encoding" in response.headers:
            raise create_api_error(0, "UnexpectedAnswer", "the response is compressed")

    def _check_size(self, size: int) -> None:
        """Raise ApiError if a response or an event is larger than this client accepts."""
        if self._max_response_bytes is not None and size > self._max_response_bytes:
            message = f"the response has more than {self._max_response_bytes} bytes"
            raise create_api_error(0, "UnexpectedAnswer", message)

    def _renew(self, used: httpx2.AsyncClient) -> bool:
        """Reload the credentials, and return whether a retry would use others than ``used``.

        Returns False if they cannot be read, or if they were already reloaded a few seconds ago.
        """
        # Another request has renewed them already: the retry uses the new session.
        if used is not self._session:
            return True
        now = time.monotonic()
        if now - self._renewed < _RENEW_SECONDS:
            return False
        self._renewed = now
        try:
            self._use_session(self._open())
        except Exception as error:
            # A file may be incomplete while it is being replaced; it is read again later.
            _log.warning("credentials cannot be read", error=repr(error))
            return False
        task = asyncio.get_running_loop().create_task(_close_later(used, self._request_seconds))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)
        _log.info("credentials or authority were refused and have been read again")
        return True

    def _use_session(self, session: httpx2.AsyncClient) -> None:
        self._session = session
        self._session_headers = {
            name.decode(): value.decode() for name, value in session.headers.raw
        }
        self._base_url = str(session.base_url).rstrip("/")

    def _open(self) -> httpx2.AsyncClient:
        return open_session(self._config(), self._field_manager)

    def _manager(self) -> dict[str, str]:
        return {"fieldManager": self._field_manager}


async def _send_authenticated(
    session: httpx2.AsyncClient, request: httpx2.Request
) -> httpx2.Response:
    """Send a request with the session's credentials, and return the response without its body.

    Raises ConfigError if a credential plugin or a token file has unusable content.
    """
    try:
        return await session.send(request, stream=True)
    except (LookupError, TypeError, ValueError) as error:
        # lightkube does not validate what it reads there.
        message = f"the credentials cannot be read: {type(error).__name__}: {error}"
        raise ConfigError(message) from error


async def _close_later(session: httpx2.AsyncClient, seconds: float) -> None:
    """Close a client once its requests have ended; interrupted watches resume on the new client."""
    try:
        await asyncio.sleep(seconds)
    finally:
        await session.aclose()


def _is_tls_failure(error: BaseException) -> bool:
    cause: BaseException | None = error if isinstance(error, httpx2.ConnectError) else None
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _selectors(selection: Selection) -> dict[str, str]:
    return {"labelSelector": selection.labels, "fieldSelector": selection.fields}


def _headers(selection: Selection, suffix: str = "") -> dict[str, str]:
    if not selection.metadata_only:
        return {}
    # The API server then sends metadata only, which saves memory and bandwidth, and keeps the data
    # of Secrets out of this process.
    kind = f"as=PartialObjectMetadata{suffix};g=meta.k8s.io;v=v1"
    return {"Accept": f"application/json;{kind},application/json"}


def _unreachable(error: Exception) -> ApiError:
    return create_api_error(0, type(error).__name__, str(error))
