"""A small synchronous Kubernetes client for plain dictionaries.

Tests handle kinds that are generated while they run, so typed models are of no use here.
Connections are kept per thread: the helpers in `fakes` run beside the tests.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

from .wait import PassingError

JSON = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
_ATTEMPTS = 3
_BUSY_SECONDS = 60.0
_BUSY_STEP = 0.2
_REQUEST_SECONDS = 60.0
# What the API server says of core or of a manager that does not answer at the moment: one that is
# busy, or is being started again. Nothing was stored, and the next attempt may succeed.
_WEBHOOK_AWAY = re.compile(r"failed calling webhook|conversion webhook for .{1,300}? failed: Post ")


class ApiError(Exception):
    """An answer of the API server with a status of 400 or more."""

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: {status}: {_message(body)}")
        self.status = status
        self.message = _message(body)


class StaleError(ApiError, PassingError):
    """404 or 409: what was read before is gone, or is another one now."""


@dataclass(frozen=True)
class Credentials:
    """Either a client certificate or a bearer token, with the CA to trust."""

    ca: Path
    cert: Path | None = None
    key: Path | None = None
    token: str | None = None


@dataclass(frozen=True)
class Kind:
    """Where a kind lives in the REST API."""

    api_version: str
    plural: str
    namespaced: bool


class KubeClient:
    """Create, read, apply and delete objects of any kind that the server knows."""

    def __init__(self, server: str, credentials: Credentials) -> None:
        self.server = server
        self.credentials = credentials
        self._address = urlsplit(server)
        self._tls = ssl.create_default_context(cafile=str(credentials.ca))
        if credentials.cert is not None:
            self._tls.load_cert_chain(credentials.cert, credentials.key)
        self._local = threading.local()
        self._connections: set[http.client.HTTPSConnection] = set()
        self._kinds: dict[tuple[str, str], Kind] = {}

    def close(self) -> None:
        """Close the kept connections of all threads; the client stays usable."""
        while self._connections:
            self._connections.pop().close()

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> JSON:
        return self.request("GET", self.path(api_version, kind, name, namespace))

    def find(
        self, api_version: str, kind: str, name: str, namespace: str | None = None
    ) -> JSON | None:
        """The object, or None when there is none of that name."""
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
        query = {}
        if labels:
            query["labelSelector"] = ",".join(f"{key}={value}" for key, value in labels.items())
        answer = self.request("GET", self.path(api_version, kind, None, namespace), query=query)
        # Items of a list carry no type of their own; callers pass them on as whole objects.
        return [{"apiVersion": api_version, "kind": kind, **item} for item in answer["items"]]

    def create(self, obj: JSON) -> JSON:
        metadata = obj["metadata"]
        path = self.path(obj["apiVersion"], obj["kind"], None, metadata.get("namespace"))
        return self.request("POST", path, body=obj)

    def apply(self, obj: JSON, manager: str = "e2e", subresource: str | None = None) -> JSON:
        """Server-side apply, taking over fields that others own."""
        path = self._path_of(obj, subresource)
        query = {"fieldManager": manager, "force": "true"}
        return self.request("PATCH", path, body=obj, content_type=APPLY_PATCH, query=query)

    def patch(
        self, obj: JSON, body: JSON, subresource: str | None = None, *, dry_run: bool = False
    ) -> JSON:
        """JSON merge patch of the object that `obj` names."""
        path = self._path_of(obj, subresource)
        query = {"dryRun": "All"} if dry_run else None
        return self.request("PATCH", path, body=body, content_type=MERGE_PATCH, query=query)

    def delete(self, obj: JSON, propagation: str | None = None) -> None:
        """Ask for deletion; an object that is gone already is fine."""
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
        found = self.resolve(api_version, kind)
        parts = [_root(api_version)]
        if found.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (found.plural, name, subresource) if part]
        return "/".join(parts)

    def resolve(self, api_version: str, kind: str) -> Kind:
        """Look the kind up in discovery; answers are kept, absences are not."""
        known = self._kinds.get((api_version, kind))
        if known is not None:
            return known
        resources = self.request("GET", _root(api_version))["resources"]
        for resource in resources:
            if resource["kind"] == kind and "/" not in resource["name"]:
                found = Kind(api_version, resource["name"], resource["namespaced"])
                self._kinds[api_version, kind] = found
                return found
        raise LookupError(f"{api_version} has no kind {kind}")

    def preferred_version(self, group: str) -> str:
        """The `group/version` that the server prefers."""
        group_info = self.request("GET", f"/apis/{group}")
        return cast(str, group_info["preferredVersion"]["groupVersion"])

    def request(
        self,
        method: str,
        path: str,
        *,
        body: JSON | None = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JSON:
        target = f"{path}?{urlencode(query)}" if query else path
        payload = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json", "Content-Type": content_type}
        if self.credentials.token:
            headers["Authorization"] = f"Bearer {self.credentials.token}"
        status, text = self._send(method, target, payload, headers)
        deadline = time.monotonic() + _BUSY_SECONDS
        while _is_busy(status, text) and time.monotonic() < deadline:
            time.sleep(_BUSY_STEP)
            status, text = self._send(method, target, payload, headers)
        if status >= 400:
            kind = StaleError if status in (404, 409) else ApiError
            raise kind(method, target, status, text)
        try:
            return cast(JSON, json.loads(text))
        except ValueError:
            return {"text": text}

    def _send(
        self, method: str, target: str, payload: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        for attempt in range(1, _ATTEMPTS + 1):
            connection = self._connection()
            try:
                connection.request(method, target, payload, headers)
                response = connection.getresponse()
                return response.status, response.read().decode()
            except (OSError, http.client.HTTPException):
                # A kept connection may have been closed by the server in the meantime.
                connection.close()
                self._connections.discard(connection)
                self._local.connection = None
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _connection(self) -> http.client.HTTPSConnection:
        kept = getattr(self._local, "connection", None)
        if kept is None:
            host, port = self._address.hostname or "", self._address.port
            kept = http.client.HTTPSConnection(
                host, port, timeout=_REQUEST_SECONDS, context=self._tls
            )
            self._local.connection = kept
        self._connections.add(kept)  # one that was closed opens again by itself
        return cast(http.client.HTTPSConnection, kept)

    def _path_of(self, obj: JSON, subresource: str | None = None) -> str:
        metadata = obj["metadata"]
        return self.path(
            obj["apiVersion"], obj["kind"], metadata["name"], metadata.get("namespace"), subresource
        )


def _is_busy(status: int, text: str) -> bool:
    """Whether to ask again. Storage is opened anew after each change of a CRD: that is a 429."""
    away = status == 500 and _WEBHOOK_AWAY.search(text) is not None
    return away or status in (429, 503, 504)


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _message(body: str) -> str:
    try:
        parsed = json.loads(body)
    except ValueError:
        return body
    return str(parsed.get("message", body)) if isinstance(parsed, dict) else body
