"""Parses what API servers respond: objects, lists, events and errors.

Anything that does not come from Kubernetes, but from a proxy in front of it, counts as no response.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from capsmith_runtime.errors import ApiError, create_api_error
from capsmith_runtime.kube.client import JSON, Page, WatchEvent
from capsmith_runtime.kube.deep_json import flatten

T = TypeVar("T")

# msgspec decodes strings as Python does, and raises for deep nesting at the interpreter's limit.
_UNDECODABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError)
_MAX_RETRY_AFTER = 300.0
_SPARE_FRAMES: Final = 300
"""Number of frames of the interpreter's limit that remain for those who encode an object again."""


async def parse(function: Callable[[bytes], T], content: bytes) -> T:
    """Return what ``function``, which is one of this module's, returns for a response.

    Containers of an object that the interpreter's limit would not let it decode are null from a
    certain depth on. The API server stores objects with up to 10,000 levels: a single one of them
    must not keep a manager from reading all the others of its kind.
    """
    # Few containers cannot be nested deeply; most events of a watch have less than a hundred.
    if content.count(b"{") + content.count(b"[") < _SPARE_FRAMES:
        return function(content)
    try:
        return _call_with_spare_frames(function, content)
    except RecursionError:
        return function(await asyncio.to_thread(flatten, content))


def _call_with_spare_frames(
    function: Callable[[bytes], T], content: bytes, frames: int = _SPARE_FRAMES
) -> T:
    """Return what the function returns when it is called with a deeper stack."""
    if frames:
        return _call_with_spare_frames(function, content, frames - 1)
    return function(content)


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


def parse_error(code: int, headers: Mapping[str, str], content: bytes) -> ApiError:
    """Return the exception for an error response, even if its body is not a Status object."""
    retry_after = headers.get("Retry-After", "")
    try:
        status = msgspec.json.decode(content, type=dict[str, Any])
    except (*_UNDECODABLE, RecursionError):
        status = {"message": content[:200].decode(errors="replace").strip()}
    return _status_error(status, code, int(retry_after[:9]) if retry_after.isdecimal() else None)


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
