"""Parse responses of the API server, or of a proxy in front of it.

No response is trusted: one that is not from Kubernetes counts as none, `Unreachable`.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import httpx2
import msgspec

from capsmith_runtime.kube.client import (
    JSON,
    ApiError,
    Page,
    ResourceExpired,
    Unreachable,
    WatchEvent,
    api_error,
)

T = TypeVar("T")

_MAX_RETRY_AFTER = 300.0


class _ListMetadata(msgspec.Struct, rename="camel"):
    resource_version: Annotated[str, msgspec.Meta(pattern="^[0-9]+$")]
    token: str = msgspec.field(name="continue", default="")


class _List(msgspec.Struct):
    metadata: _ListMetadata
    items: list[JSON] | None = None


class _Event(msgspec.Struct):
    type: str
    object: JSON


class _Version(msgspec.Struct):
    version: str


class _Group(msgspec.Struct, rename="camel"):
    preferred_version: _Version
    versions: list[_Version]


def object_of(content: bytes) -> JSON:
    """Return the object of a response."""
    return _with_metadata(_decoded(content, dict[str, Any]))


def page_of(content: bytes) -> Page:
    """Return the page of a list."""
    found = _decoded(content, _List)
    items = [_with_metadata(item) for item in found.items or []]
    return Page(items, found.metadata.resource_version, found.metadata.token)


def versions_of(content: bytes) -> tuple[str, ...]:
    """Return the versions of an API group, preferred first."""
    found = _decoded(content, _Group)
    preferred = found.preferred_version.version
    return (preferred, *(each.version for each in found.versions if each.version != preferred))


def event_of(line: bytes) -> WatchEvent:
    """Return an event of a watch; raise the error with which the server ends it."""
    event = _decoded(line, _Event)
    if event.type == "ERROR":
        raise _status_error(event.object, event.object.get("code"))
    return WatchEvent(event.type, _with_metadata(event.object))


def error_of(response: httpx2.Response) -> ApiError:
    """Return the error of a response, whatever its body is."""
    asked = response.headers.get("Retry-After", "")
    try:
        status = msgspec.json.decode(response.content, type=dict[str, Any])
    except msgspec.MsgspecError:
        status = {"message": response.text[:200].strip()}
    return _status_error(status, response.status_code, int(asked) if asked.isdecimal() else None)


def _status_error(status: JSON, code: object, retry_after: float | None = None) -> ApiError:
    if retry_after is None:
        details = status.get("details")
        seconds = details.get("retryAfterSeconds") if isinstance(details, dict) else None
        retry_after = seconds if isinstance(seconds, int) and seconds > 0 else None
    if retry_after is not None:
        retry_after = min(float(retry_after), _MAX_RETRY_AFTER)
    number = code if isinstance(code, int) else 500
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if reason == "Expired":
        return ResourceExpired(number, reason, message)
    return api_error(number, reason, message, retry_after)


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise _nonsense(str(error)) from error


def _with_metadata(obj: JSON) -> JSON:
    if not isinstance(obj.get("metadata"), dict):
        raise _nonsense("not an object of Kubernetes")
    return obj


def _nonsense(message: str) -> Unreachable:
    return Unreachable(0, "UnexpectedAnswer", message)
