"""Minimal merge patches (RFC 7386): only changed fields, with the status in a separate request."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from copy import deepcopy
from functools import partial
from typing import Any, Final

from capsmith_runtime.errors import TooManyRequestsError
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType, is_gone, key_of

_ZEROS: dict[str, Any] = {
    **{"string": "", "boolean": False, "integer": 0, "number": 0},
    **{"array": [], "object": {}},
}
_MAIN = ("metadata", "spec")
# Lists that other writers change too. A merge patch replaces a whole list, so the patch must fail
# if the list has changed since it was read.
_SHARED = (
    ("metadata", "finalizers"),
    ("metadata", "ownerReferences"),
    ("status", "conditions"),
)

_REPEATS: Final = 3
"""How often a write is sent again, at most, while the API server is overloaded."""
_PATIENCE_SECONDS: Final = 2.0
"""Maximum delay that the API server may request for that; a longer one is left to the queue."""


def merge_patch(old: JSON, new: JSON) -> JSON:
    """Return the merge patch from `old` to `new`; null removes a field, and lists are replaced.

    An empty value ({}, [], null) counts as absent: it is never added, and a value that has become
    empty is removed. Kubernetes serialises optional fields the same way.
    """
    patch: JSON = {}
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        if before == after or (_empty(before) and _empty(after)):
            continue
        if _empty(after):
            patch[name] = None
        elif isinstance(before, dict) and isinstance(after, dict):
            if inner := merge_patch(before, after):
                patch[name] = inner
        else:
            patch[name] = _without_empty(after)
    return patch


def needs_lock(*patches: JSON) -> bool:
    """Return whether a patch replaces a list that other writers also change.

    Such a patch must be rejected if the object has changed since it was read.
    """
    return any(name in (patch.get(part) or {}) for patch in patches for part, name in _SHARED)


async def write(
    client: KubeClient,
    resource: ResourceType,
    old: JSON,
    new: JSON,
    update_cache: Callable[[JSON], None],
) -> JSON:
    """Write the differences in metadata, spec and status, and return the resulting object.

    Sends at most two requests, the status last, and none if nothing changed. If the first request
    removes the last finalizer of an object that is being deleted, the status is not written.
    A request that the API server rejects for a short time, because it is overloaded, is sent again.
    `update_cache` receives each response (see `Informer.update_from_write`). Raises `ConflictError`
    if a shared list has changed on the server, and `NotFoundError` if the object is gone.
    """
    new = remove_absent_fields(resource, new)
    parts = {part: merge_patch(old.get(part) or {}, new.get(part) or {}) for part in _MAIN}
    main = {part: patch for part, patch in parts.items() if patch}
    state = build_status_patch(resource, old.get("status") or {}, new.get("status") or {})
    status = {"status": state} if state else {}
    # Both requests are locked if one of them needs it.  The second uses the version that the first
    # returned: it fails only if another client wrote in between.
    locked = needs_lock(main, status)
    # A conflict is not retried here, although retrying the reconcile calls the author's code again:
    # the newer object may be paused, deleted or changed, and decisions based on the old one ignore
    # that.
    current, key = old, key_of(old)
    for body, send in ((main, client.patch), (status, client.patch_status)):
        if body:
            # A merge patch changes only the fields that it contains, so other patches need no
            # version: a conflict with an unrelated write would only cost another reconcile.
            version = current["metadata"]["resourceVersion"] if locked else ""
            current = await _send_patiently(
                partial(send, resource, key, body, resource_version=version)
            )
            update_cache(current)
        # This write has removed the last finalizer and so the object: a request for its status
        # would fail with NotFound.
        if is_gone(current):
            break
    return current


async def _send_patiently(send: Callable[[], Awaitable[JSON]]) -> JSON:
    """Send a write, and send it again a few times if the API server has no capacity for it.

    Such a request has had no effect. To retry the reconcile instead would call the author's code
    again, and with it the infrastructure.
    """
    for _ in range(_REPEATS):
        try:
            return await send()
        except TooManyRequestsError as error:
            if error.retry_after is None or error.retry_after > _PATIENCE_SECONDS:
                raise
            # Jitter, because many workers are rejected at the same moment.
            await asyncio.sleep(error.retry_after * random.uniform(1.0, 1.5))
    return await send()


def remove_absent_fields(resource: ResourceType, obj: JSON) -> JSON:
    """Return `obj` without the fields that the CRD of its kind lacks; `obj` is not modified.

    The API server would drop these fields, so every reconcile would write them again.  An object
    inside spec or status that has no other fields is left out, too: the CRD may require others.
    """
    for path in resource.absent_fields:
        obj = _without(obj, path.split("."))
    return obj


def _without(value: Any, steps: list[str], *, is_inside: bool = False) -> Any:
    if isinstance(value, list):
        return [_without(each, steps, is_inside=is_inside) for each in value]
    first, *rest = steps
    if not isinstance(value, dict) or first not in value:
        return value
    below = _without(value[first], rest, is_inside=True) if rest else None
    if rest and not (is_inside and below == {} != value[first]):
        return {**value, first: below}
    return {name: each for name, each in value.items() if name != first}


def build_status_patch(resource: ResourceType, old: JSON, new: JSON) -> JSON:
    """Return the merge patch of a status, with zero values for required fields that are missing.

    The schema of such a status rejects an object without these fields, but merge_patch leaves out
    empty objects and lists.
    """
    if "conditions" in new:
        new = {**new, "conditions": [_complete(resource, each) for each in new["conditions"]]}
    if not resource.required_status or not new:
        return merge_patch(old, new)
    missing = _build_zeros(resource, new)
    patch = merge_patch(old, {**missing, **new})
    # A merge patch adds no empty objects and lists.
    return {**patch, **{name: zero for name, zero in missing.items() if name not in old}}


def _build_zeros(resource: ResourceType, new: JSON) -> JSON:
    """Return the zero values of the required fields that the status ``new`` does not have."""
    found: JSON = {}
    for path, kind in resource.required_status:
        *parents, name = path.split(".")
        if (*parents, name)[0] in new:
            continue
        place = found
        for parent in parents:
            place = place[parent]
        place[name] = deepcopy(_ZEROS[kind])
    return found


def _complete(resource: ResourceType, condition: JSON) -> JSON:
    """Return a condition with the fields that the API server requires."""
    if resource.required_in_conditions:
        values = {"reason": condition.get("type", ""), "message": ""}
        missing = {
            name: values[name] for name in resource.required_in_conditions if name not in condition
        }
        condition = {**condition, **missing} if missing else condition
    if not resource.needs_messages or condition.get("message") != "":
        return condition
    return {**condition, "message": condition.get("reason") or condition.get("type", "")}


def _empty(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_empty(inner) for inner in value.values())
    return value is None or value == []


def _without_empty(value: Any) -> Any:
    """Remove empty objects and nulls from a new value; keep the items of lists."""
    if not isinstance(value, dict):
        return value
    cleaned = {name: _without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in cleaned.items() if not _empty(inner)}
