"""An API server client that uses only the standard library: requests, waits, watches and TLS."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import urlencode, urlsplit

from capsmith.clusters.processes.tls import (
    REQUEST_SECONDS,
    TotalTimeoutError,
    create_api_server_context,
    set_deadline,
)
from capsmith.clusters.processes.wait import PassingError
from capsmith.manifests.parse import list_of, mapping_of, text_of

JSON = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_UNAUTHORIZED = 401
FIELD_MANAGER = "capsmith"
"""Name under which the API server records what capsmith applies, and what it updates."""
_ATTEMPTS = 3
_BUSY_SECONDS = 60.0
_BUSY_STEP = 0.2
_MAX_BYTES = 256 * 1024 * 1024
"""Maximum size of a response, or of a watch event, that is read."""
_PLAIN = "text/plain"
_ALWAYS_SERVED = ("v1", "apiextensions.k8s.io/v1")
"""API versions of every API server with CRDs.

Two, because a server may send the same for every path.
"""
_NO_API_SERVER = "the server is not an API server of Kubernetes: it does not list its API versions"
_MAX_MESSAGE = 10_000
"""Maximum characters of a server's message that are kept."""
_SHOWN = 200
"""Maximum characters of a response that is no answer of an API server, for its message."""


class ApiError(Exception):
    """Raised for a response whose status is 300 or higher, or that cannot be read."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        # A webhook can return a message of megabytes.
        self.message = extract_message(body)[:_MAX_MESSAGE]
        super().__init__(f"{method} {path}: {status}: {self.message}")
        self.status = status


class _Response(NamedTuple):
    """What a server sent."""

    status: int
    text: str
    is_plain: bool
    """Whether it is plain text, such as a log, rather than JSON."""


class NoApiServerError(ApiError):
    """Raised for responses of a server that is no API server of Kubernetes."""


class StaleError(ApiError, PassingError):
    """Raised for status 404 and 409: an object was deleted or changed since it was read."""


class TokenSource(Protocol):
    """Protocol for a source of bearer tokens that expire (:attr:`Credentials.source`)."""

    def token(self) -> str:
        """Return a token that has not expired.

        Raises OSError if no token is available.
        """

    def expire(self) -> None:
        """Discard the current token, so that :meth:`token` returns a different one."""


@dataclass(frozen=True)
class Credentials:
    """A client certificate or a bearer token, and the CA bundle to trust."""

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    token: str | None = None
    source: TokenSource | None = None
    """Source of expiring tokens to use instead of ``token``; None if there is none."""


@dataclass(frozen=True)
class ServedKind:
    """The plural, version and scope under which the API server serves a kind."""

    api_version: str
    plural: str
    namespaced: bool


class KubeClient:
    """A client that creates, reads, applies and deletes objects of any kind that the server serves.

    Objects are plain dictionaries, because their kinds are known only at run time.  Thread-safe:
    each thread uses its own connections.
    """

    retries_webhooks = True
    """Whether requests are retried while a webhook of core or a manager does not respond."""

    def __init__(self, server: str, credentials: Credentials) -> None:
        self.server = server
        self.credentials = credentials
        self._address = urlsplit(server)
        self._tls = create_api_server_context(credentials.ca)
        if credentials.cert is not None:
            self._tls.load_cert_chain(credentials.cert, credentials.key)
        self._connections: dict[threading.Thread, http.client.HTTPSConnection] = {}
        self._watches: set[http.client.HTTPSConnection] = set()
        self._kinds: dict[tuple[str, str], ServedKind] = {}

    def close(self) -> None:
        """Close all threads' idle connections. The client can still be used."""
        for thread in list(self._connections):
            self._close_connection(thread)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> JSON:
        """Return an object.

        Raises StaleError if the object does not exist.
        """
        return self.request("GET", self.path(api_version, kind, name, namespace))

    def find(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> JSON | None:
        """Return an object, or None if it does not exist."""
        try:
            return self.get(api_version, kind, name, namespace)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(
        self,
        api_version: str,
        kind: str,
        namespace: str | None = None,
        labels: dict[str, str] | None = None,
    ) -> list[JSON]:
        """Return the objects of a kind that have all of ``labels``, in one namespace or in all."""
        query = {}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        answer = self.request("GET", self.path(api_version, kind, None, namespace), query=query)
        items = answer.get("items")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise ApiError("GET", kind, http.HTTPStatus.OK, "the response has no list of objects")
        # Items of a list have no apiVersion and kind, but callers pass them on as complete objects.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in items]

    def create(self, obj: JSON) -> JSON:
        """Create an object and return it as stored by the API server."""
        metadata = obj["metadata"]
        path = self.path(obj["apiVersion"], obj["kind"], None, metadata.get("namespace"))
        return self.request("POST", path, body=obj)

    def apply(
        self,
        obj: JSON,
        manager: str = FIELD_MANAGER,
        subresource: str | None = None,
        *,
        dry_run: bool = False,
        is_forced: bool = True,
    ) -> JSON:
        """Apply an object server-side and take ownership of conflicting fields.

        Raises StaleError with status 409 if there are conflicts and ``is_forced`` is false.
        """
        path = self._path_of(obj, subresource)
        force = "true" if is_forced else "false"
        query = {"fieldManager": manager, "force": force, **build_dry_run_query(dry_run)}
        return self.request("PATCH", path, body=obj, content_type=APPLY_PATCH, query=query)

    def patch(
        self, obj: JSON, body: JSON, subresource: str | None = None, *, dry_run: bool = False
    ) -> JSON:
        """Apply the JSON merge patch ``body`` to the object that `obj` identifies.

        Returns the object as stored by the API server.
        """
        path = self._path_of(obj, subresource)
        query = build_dry_run_query(dry_run)
        return self.request("PATCH", path, body=body, content_type=MERGE_PATCH, query=query)

    def merge(self, obj: JSON, body: JSON, subresource: str | None = None) -> JSON:
        """Apply the strategic merge patch ``body``, which merges lists by their items' keys.

        Only Kubernetes' own kinds support such patches.  Returns the object as stored.
        """
        path = self._path_of(obj, subresource)
        return self.request("PATCH", path, body=body, content_type=STRATEGIC_PATCH)

    def delete(self, obj: JSON, propagation: str | None = None) -> None:
        """Request an object's deletion without waiting. A missing object is not an error."""
        query = {"propagationPolicy": propagation} if propagation else {}
        try:
            self.request("DELETE", self._path_of(obj), query=query)
        except ApiError as error:
            if error.status != 404:
                raise

    def path(
        self,
        api_version: str,
        kind: str,
        name: str | None = None,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Return the URL path of an object, or of its kind if there is no name."""
        found = self.resolve(api_version, kind)
        parts = [build_api_root(api_version)]
        if found.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (found.plural, name, subresource) if part]
        return "/".join(parts)

    def resolve(self, api_version: str, kind: str) -> ServedKind:
        """Return a kind's plural, version and scope; the result is cached.

        Raises LookupError if the API version lacks the kind, and ApiError if the server does not
        serve the API version.
        """
        known = self._kinds.get((api_version, kind))
        if known is not None:
            return known
        answer = self.request("GET", build_api_root(api_version))
        for resource in list_of(answer, "resources"):
            plural = text_of(resource, "name")
            # Names with a slash are subresources, whose kind is that of their object or another one
            # (Scale).
            if text_of(resource, "kind") == kind and plural and "/" not in plural:
                is_namespaced = mapping_of(resource).get("namespaced") is True
                found = ServedKind(api_version, plural, is_namespaced)
                self._kinds[api_version, kind] = found
                return found
        raise LookupError(f"{api_version} has no kind {kind}")

    def preferred_version(self, group: str) -> str:
        """Return the `group/version` that the server prefers for an API group."""
        group_info = self.request("GET", f"/apis/{group}")
        version = text_of(group_info, "preferredVersion", "groupVersion")
        if not version:
            raise LookupError(f"the server prefers no version of {group}")
        return version

    def require_api_server(self) -> None:
        """Raise NoApiServerError if the server does not list API versions as API servers do.

        Raises OSError or HTTPException if it does not respond.
        """
        for version in _ALWAYS_SERVED:
            path = build_api_root(version)
            try:
                found = self.request("GET", path)
            except StaleError as error:
                raise NoApiServerError("GET", path, error.status, _NO_API_SERVER) from error
            # A missing permission says nothing; the requests that follow decide.
            except ApiError as error:
                if error.status != http.HTTPStatus.FORBIDDEN:
                    raise
            else:
                if (text_of(found, "kind"), text_of(found, "groupVersion")) != (
                    "APIResourceList",
                    version,
                ):
                    raise NoApiServerError("GET", path, http.HTTPStatus.OK, _NO_API_SERVER)

    def request(
        self,
        method: str,
        path: str,
        *,
        body: JSON | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JSON:
        """Send a request and return the decoded response. Plain text is under the key `text`.

        Retries for up to a minute while the server is busy.  Raises ApiError if the server rejects
        the request or answers as no API server does, and OSError or HTTPException if it does not
        respond.
        """
        path = self._address.path.rstrip("/") + path
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        headers = {**self._headers(), "Content-Type": content_type}
        response = self._send(method, target, payload, headers)
        if response.status == _UNAUTHORIZED and self.credentials.source is not None:
            # The token was revoked early; if a new token is also rejected, that is final.
            self.credentials.source.expire()
            headers |= self._headers()
            response = self._send(method, target, payload, headers)
        deadline = time.monotonic() + _BUSY_SECONDS
        while self._is_busy(response) and time.monotonic() < deadline:
            time.sleep(_BUSY_STEP)
            response = self._send(method, target, payload, headers)
        # An API server redirects no client; a proxy that requires a login does.
        if response.status >= 300:
            kind = StaleError if response.status in (404, 409) else ApiError
            raise kind(method, target, response.status, response.text)
        if response.is_plain:
            return {"text": response.text}
        return _decode(method, target, response.text, response.status)

    def watch(
        self, api_version: str, kind: str, namespace: str | None, resource_version: str
    ) -> Iterator[JSON]:
        """Yield a kind's watch events after a resource version, until the server ends the watch.

        Raises ApiError if the server rejects the request, and OSError or HTTPException if the
        connection breaks.
        """
        path = self.path(api_version, kind, namespace=namespace)
        query = {"watch": "true", "resourceVersion": resource_version, "timeoutSeconds": "300"}
        # A separate connection, because a watch occupies it for minutes.  No timeout, because a
        # watch without changes is silent, and the server ends it after `timeoutSeconds`.
        connection = self._connect(timeout=None)
        self._watches.add(connection)
        try:
            connection.request("GET", f"{path}?{urlencode(query)}", headers=self._headers())
            response = connection.getresponse()
            if response.status >= 300:
                raise ApiError("GET", path, response.status, _read(response, "GET", path))
            while line := response.readline(_MAX_BYTES):
                yield _decode("GET", path, line, response.status)
        finally:
            self._watches.discard(connection)
            connection.close()

    def end_watches(self) -> None:
        """Interrupt all of this client's watches, in all threads."""
        for connection in list(self._watches):
            # Read once: the thread of a watch that ends by itself sets it to None.
            sock = connection.sock
            # Closing the socket would not wake the thread that reads from it, but a shutdown ends
            # its read.
            if sock is not None:
                with suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def _is_busy(self, response: _Response) -> bool:
        can_retry = response.status != 500 or self.retries_webhooks
        return can_retry and is_busy(response.status, response.text)

    def _send(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str]
    ) -> _Response:
        # A repeated create may find the object that the previous attempt created, and report 409.
        for attempt in range(1, _ATTEMPTS + 1):
            connection = self._connection()
            try:
                set_deadline(connection)
                connection.request(method, target, payload, headers)
                response = connection.getresponse()
                content_type = response.headers.get("Content-Type") or ""
                is_plain = content_type.partition(";")[0].strip().lower() == _PLAIN
                return _Response(response.status, _read(response, method, target), is_plain)
            except ApiError:
                # The rest of the response has not been read.
                connection.close()
                raise
            except (OSError, http.client.HTTPException) as error:
                # The server may have closed an idle connection in the meantime.
                connection.close()
                self._connections.pop(threading.current_thread(), None)
                if attempt == _ATTEMPTS or isinstance(error, TotalTimeoutError):
                    raise
        raise AssertionError("unreachable")

    def _headers(self) -> dict[str, str]:
        source = self.credentials.source
        token = source.token() if source is not None else self.credentials.token
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        # The API server derives the manager of fields from it.
        return {"Accept": "application/json", "User-Agent": FIELD_MANAGER, **bearer}

    def _connect(self, timeout: float | None) -> http.client.HTTPSConnection:
        host, port = self._address.hostname or "", self._address.port
        return http.client.HTTPSConnection(host, port, timeout=timeout, context=self._tls)

    def _connection(self) -> http.client.HTTPSConnection:
        thread = threading.current_thread()
        kept = self._connections.get(thread)
        if kept is None:
            # Threads that have ended cannot close their connections.
            for other in list(self._connections):
                if not other.is_alive():
                    self._close_connection(other)
            kept = self._connections[thread] = self._connect(REQUEST_SECONDS)
        return kept

    def _close_connection(self, thread: threading.Thread) -> None:
        # Another thread may close the same one at this moment.
        kept = self._connections.pop(thread, None)
        if kept is not None:
            kept.close()

    def _path_of(self, obj: JSON, subresource: str | None = None) -> str:
        metadata = obj["metadata"]
        return self.path(
            obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace"), subresource
        )


# The API server's message if the webhook of core or of a manager does not respond because it is
# busy or restarting. Nothing was stored, and the next attempt may succeed.
_WEBHOOK_AWAY = re.compile(r"failed calling webhook|conversion webhook for .{1,300}? failed: Post ")


def is_busy(status: int, text: str) -> bool:
    """Return whether a request should be retried, because the server or a webhook is busy.

    For example, a request may get status 429 while a CRD is reloaded.
    """
    # Only this message is retried: retrying any other 500 would hide a failure of the server.
    away = status == 500 and _WEBHOOK_AWAY.search(text) is not None
    return away or status in (429, 503, 504)


def build_dry_run_query(dry_run: bool) -> dict[str, str]:
    """Return the query parameters for a dry run; empty if ``dry_run`` is False."""
    return {"dryRun": "All"} if dry_run else {}


def build_api_root(api_version: str) -> str:
    """Return the URL path of an API version."""
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _read(response: http.client.HTTPResponse, method: str, target: str) -> str:
    """Return the body.  A log may contain bytes that are no UTF-8."""
    # Only without a limit, a body that is shorter than announced is an error.
    limit = _MAX_BYTES + 1 if response.length is None else None
    content = b"" if (response.length or 0) > _MAX_BYTES else response.read(limit)
    if len(content) > _MAX_BYTES or response.length:
        raise ApiError(method, target, response.status, "the response is too large")
    return content.decode(errors="replace")


def _decode(method: str, path: str, content: str | bytes, status: int) -> JSON:
    """Return decoded JSON.

    Raises ApiError for other content, as from a proxy that requires a login, and if any user's
    object in it is nested too deeply, which the API server allows up to 10,000 levels.
    """
    try:
        found = json.loads(content)
    except RecursionError as error:
        message = "an object in the response is nested too deeply to be read"
        raise ApiError(method, path, http.HTTPStatus.OK, message) from error
    except ValueError:
        found = None
    if isinstance(found, dict):
        return cast(JSON, found)
    shown = content if isinstance(content, str) else content.decode(errors="replace")
    begin = " ".join(shown[:_SHOWN].split()) or "nothing"
    raise ApiError(method, path, status, f"the response is not an object of an API server: {begin}")


def extract_message(body: str) -> str:
    """Return the message if the response is a Status, else the whole body."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return body
    return str(parsed.get("message", body)) if isinstance(parsed, dict) else body
