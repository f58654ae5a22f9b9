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
from typing import Annotated, Any, Final, TypeVar

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
from capsmith_runtime.kube.tracing import request_span

T = TypeVar("T")

# msgspec decodes strings as Python does, and leaves deep nesting to the interpreter's limit.
_UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_MAX_RETRY_AFTER = 300.0


# Responses are validated: a response that does not come from Kubernetes, but from a proxy in front
# of it, counts as no response (`UnreachableError`).
class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
    token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[JSON] | None = None


_Fields = dict[str, msgspec.Raw]
"""An object of which only the names of the fields are decoded."""


class _ListOfFields(msgspec.Struct):
    metadata: _ListMetadata
    items: list[_Fields] | None = None


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    preferred_version: _Version
    versions: list[_Version]


def parse_object(content: bytes | msgspec.Raw) -> JSON:
    """Return the object in a response body."""
    return _with_metadata(_decoded(content, dict[str, Any]))


def parse_page(content: bytes, *, managed_fields: bool = True) -> Page:
    """Return the page of a list in a response body, with or without ``managedFields``."""
    if managed_fields:
        found = _decoded(content, _List)
        items = [_with_metadata(item) for item in found.items or []]
        return Page(items, found.metadata.resource_version, found.metadata.token)
    read = _decoded(content, _ListOfFields)
    items = [_without_managed_fields(item) for item in read.items or []]
    return Page(items, read.metadata.resource_version, read.metadata.token)


def parse_versions(content: bytes) -> tuple[str, ...]:
    """Return the versions of an API group, the preferred one first."""
    found = _decoded(content, _Group)
    preferred = found.preferred_version.version
    return (preferred, *(each.version for each in found.versions if each.version != preferred))


def parse_event(line: bytes, *, managed_fields: bool = True) -> WatchEvent:
    """Return the event in one line of a watch response, with or without ``managedFields``.

    Raises the matching ApiError if the line reports the error that ended the watch.
    """
    event = _decoded(line, _Event)
    if event.type == "ERROR":
        status = _decoded(event.object, dict[str, Any])
        raise _status_error(status, status.get("code"))
    if managed_fields:
        return WatchEvent(event.type, parse_object(event.object))
    return WatchEvent(event.type, _without_managed_fields(_decoded(event.object, _Fields)))


def parse_error(response: httpx2.Response) -> ApiError:
    """Return the exception for an error response, even if its body is not a Status object."""
    retry_after = response.headers.get("Retry-After", "")
    try:
        status = msgspec.json.decode(response.content, type=dict[str, Any])
    except _UNDECODABLE:
        status = {"message": response.text[:200].strip()}
    return _status_error(
        status, response.status_code, int(retry_after) if retry_after.isdecimal() else None
    )


def _status_error(status: JSON, code: object, retry_after: float | None = None) -> ApiError:
    if retry_after is None:
        details = status.get("details")
        seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
        retry_after = seconds if isinstance(seconds, int) and seconds > 0 else None
    if retry_after is not None:
        retry_after = min(float(retry_after), _MAX_RETRY_AFTER)
    number = code if isinstance(code, int) else 500
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    # Only a new list helps, so a delay would be pointless.
    if reason == "Expired":
        return create_api_error(number, reason, message)
    return create_api_error(number, reason, message, retry_after)


# managedFields have more containers than the rest of most objects: decoding a list without them
# takes a fifth of the time.
def _without_managed_fields(fields: _Fields) -> JSON:
    """Return the object whose fields are given, without ``managedFields``."""
    metadata = _decoded(fields.pop("metadata", msgspec.Raw(b"null")), _Fields)
    metadata.pop("managedFields", None)
    return {**_values(fields), "metadata": _values(metadata)}


def _values(fields: _Fields) -> JSON:
    try:
        return {name: msgspec.json.decode(value) for name, value in fields.items()}
    except _UNDECODABLE as error:
        raise _nonsense(str(error)) from error


def _decoded(content: bytes | msgspec.Raw, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except _UNDECODABLE as error:
        raise _nonsense(str(error)) from error


def _with_metadata(obj: JSON) -> JSON:
    if not isinstance(obj.get("metadata"), dict):
        raise _nonsense("not an object of Kubernetes")
    return obj


def _nonsense(message: str) -> ApiError:
    return create_api_error(0, "UnexpectedAnswer", message)


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
    ) -> None:
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
        self._session = self._open()
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
        headers = {**_headers(selection, "List"), "Accept-Encoding": "gzip"}
        content = await self._call("list", "GET", path, params, headers=headers)
        return parse_page(content, managed_fields=selection.managed_fields)

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        """Return one object from the API server; see `KubeClient.get`."""
        return parse_object(await self._call("get", "GET", resource.object_path(key)))

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        """Create an object and return it; see `KubeClient.create`."""
        path = resource.path(obj["metadata"].get("namespace", ""))
        return parse_object(await self._call("create", "POST", path, self._manager(), obj))

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        """Replace an object and return the result; see `KubeClient.update`."""
        path = resource.object_path(key_of(obj))
        return parse_object(await self._call("update", "PUT", path, self._manager(), obj))

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
        return parse_object(await self._call("apply", "PATCH", path, params, obj, _APPLY))

    async def delete(self, resource: ResourceType, key: NamespacedName, *, uid: str = "") -> None:
        """Request the deletion of an object; see `KubeClient.delete`."""
        # The API server compares the UID itself, so no other object of the same name can be deleted
        # in between.
        body = {"preconditions": {"uid": uid}} if uid else None
        await self._call("delete", "DELETE", resource.object_path(key), body=body)

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return the served versions of an API group; see `KubeClient.served_versions`."""
        try:
            return parse_versions(await self._call("get", "GET", f"/apis/{group}"))
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
        await self._limit.wait()
        try:
            response = await self._send(
                "watch", "GET", path, params, headers=headers, timeout=timeout, stream=True
            )
            try:
                # Split only at newlines: JSON in events contains other line separators of Unicode,
                # at which str.splitlines would split.
                rest = b""
                async for chunk in response.aiter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        if line:
                            yield parse_event(line, managed_fields=selection.managed_fields)
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
        return parse_object(await self._call(verb, "PATCH", path, self._manager(), body, _MERGE))

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
            return response.content
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
        stream: bool = False,
    ) -> httpx2.Response:
        """Send a request in its own span, and raise the matching ApiError for an error."""
        with request_span(method, path) as span:
            headers = span.with_trace_context(headers)
            try:
                response = await self._request(
                    verb, method, path, params, content, headers, timeout=timeout, stream=stream
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
        stream: bool,
    ) -> httpx2.Response:
        """Send a request, and raise the matching ApiError for an error status.

        The request is sent again with new credentials after a 401, or after repeated TLS failures.
        """
        query = {name: value for name, value in params.items() if value}
        timeout = timeout or httpx2.Timeout(self._request_seconds, connect=self._connect_seconds)
        for retry in (False, True):
            session = self._session
            request = session.build_request(
                method, path, params=query, content=content, headers=headers, timeout=timeout
            )
            try:
                response = await session.send(request, stream=stream)
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
            await response.aread()
            await response.aclose()
            # Tokens of ServiceAccounts expire and are replaced on disk, so a 401 may only mean that
            # the old one was sent.
            if response.status_code != 401 or retry or not self._renew(session):
                raise parse_error(response)
        raise AssertionError("unreachable")

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
            self._session = self._open()
        except Exception as error:
            # A file may be incomplete while it is being replaced; it is read again later.
            _log.warning("credentials cannot be read", error=repr(error))
            return False
        task = asyncio.get_running_loop().create_task(_close_later(used, self._request_seconds))
        self._retired.add(task)
        task.add_done_callback(self._retired.discard)
        _log.info("credentials or authority were refused and have been read again")
        return True

    def _open(self) -> httpx2.AsyncClient:
        return open_session(self._config(), self._field_manager)

    def _manager(self) -> dict[str, str]:
        return {"fieldManager": self._field_manager}


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
