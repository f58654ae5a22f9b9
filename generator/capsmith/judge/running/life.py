"""Derive an object's life from its recorded states: what changed, and who wrote it.

Pure functions.  Only names, ids, owners, finalizers, conditions and milestones are copied from an
object, so that a report contains neither credentials nor bootstrap data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from capsmith.clusters.conditions import get_mapping, get_sequence, list_conditions
from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.history import State
from capsmith.judge.running.model import ObjectChange

Path = tuple[str, ...]
"""Keys in managed fields, without ``f:``; the last may be a list entry's key (``k:``)."""

_VALUES: tuple[Path, ...] = (
    ("spec", "providerID"),
    ("spec", "providerIDList"),
    ("spec", "paused"),
    ("status", "initialization", "provisioned"),
    ("status", "initialization", "dataSecretCreated"),
    ("status", "initialization", "controlPlaneInitialized"),
    ("status", "ready"),
    ("status", "initialized"),
    ("status", "phase"),
)
"""Fields whose changes are milestones."""
_PAUSED = ("metadata", "annotations", "cluster.x-k8s.io/paused")
_CONDITION_PATHS = {
    "v1beta1": ("status", "deprecated", "v1beta1", "conditions"),
    "v1beta2": ("status", "v1beta2", "conditions"),
}


class _Step(NamedTuple):
    """A difference between two states."""

    what: str
    path: Path = ()
    has_writer: bool = True


def list_changes(
    states: Sequence[State], begin: float, hide: Callable[[str], str]
) -> tuple[ObjectChange, ...]:
    """Return the changes to an object in order.

    ``begin`` is when the check began, and ``hide`` replaces secret values in a string.
    """
    changes = []
    former: JSON = {}
    for state in states:
        steps = (
            [_Step("deleted", has_writer=False)]
            if state.is_deleted
            else _compare(former, state.obj)
        )
        for step in steps:
            writer = _find_writer(former, state.obj, step.path) if step.has_writer else ""
            changes.append(
                ObjectChange(
                    round(state.seconds - begin, 3) + 0.0,
                    hide(step.what),
                    _format_path(step.path),
                    writer,
                )
            )
        # An object that is created again after its deletion begins a new life.
        former = {} if state.is_deleted else state.obj
    return tuple(changes)


def _compare(old: JSON, new: JSON) -> Iterator[_Step]:
    if not old:
        yield _Step("created")
    yield from _compare_owners(old, new)
    yield from _compare_finalizers(old, new)
    for path in (*_VALUES, _PAUSED):
        before, after = _get(old, path), _get(new, path)
        if before != after:
            yield _Step(_describe_value(path, after), path)
    yield from _compare_conditions(old, new)
    if _get(new, _DELETION) and not _get(old, _DELETION):
        # The API server sets the field, and records no manager for it.
        yield _Step("deletion requested", _DELETION, has_writer=False)


_DELETION = ("metadata", "deletionTimestamp")


def _describe_value(path: Path, value: Any) -> str:
    name = path[-1]
    if value is None:
        return f"{name} removed"
    text = value if isinstance(value, str) else json.dumps(value)
    return f"{name}: {text}" if text else f"{name} set"


def _compare_owners(old: JSON, new: JSON) -> Iterator[_Step]:
    path = ("metadata", "ownerReferences")
    before, after = (
        {each.get("uid"): each for each in map(get_mapping, get_sequence(_get(obj, path)))}
        for obj in (old, new)
    )
    for uid, owner in after.items():
        if uid not in before:
            place = (*path, f'k:{json.dumps({"uid": uid}, separators=(",", ":"))}')
            yield _Step(f"owner set: {owner.get('kind')} {owner.get('name')}", place)
    for uid, owner in before.items():
        if uid not in after:
            yield _Step(f"owner removed: {owner.get('kind')} {owner.get('name')}", path)


def _compare_finalizers(old: JSON, new: JSON) -> Iterator[_Step]:
    path = ("metadata", "finalizers")
    before, after = (list(map(str, get_sequence(_get(obj, path)))) for obj in (old, new))
    for each in after:
        if each not in before:
            yield _Step(f"finalizer added: {each}", (*path, f"v:{json.dumps(each)}"))
    for each in before:
        if each not in after:
            yield _Step(f"finalizer removed: {each}", path)


def _compare_conditions(old: JSON, new: JSON) -> Iterator[_Step]:
    # By path: the contract of a path depends on what else the status has.
    before, after = (
        {(_find_conditions(obj, each.contract), each.type): each for each in list_conditions(obj)}
        for obj in (old, new)
    )
    for key, each in after.items():
        former = before.get(key)
        shown = (each.status, each.reason, each.message)
        if former is not None and (former.status, former.reason, former.message) == shown:
            continue
        reason = f" {each.reason}" if each.reason else ""
        message = f": {each.message}" if each.message else ""
        text = f"condition {each.type}: {each.status}{reason}{message}"
        yield _Step(text, (*key[0], _key(each.type)))
    for path, type in before:
        if (path, type) not in after:
            yield _Step(f"condition {type} removed", path)


def _find_conditions(obj: JSON, contract: str) -> Path:
    """Return the path to the conditions of a contract in an object."""
    place = _CONDITION_PATHS.get(contract, ())
    return place if place and _get(obj, place) is not None else ("status", "conditions")


def _key(type: str) -> str:
    return f'k:{json.dumps({"type": type}, separators=(",", ":"))}'


def _find_writer(old: JSON, new: JSON, path: Path) -> str:
    """Return the field manager that wrote a change; empty if managed fields do not tell.

    Entries that own the field and have changed come first, then entries that have changed: a
    field that was removed has no owner.  An entry that owns the field may look unchanged, because
    its time has a resolution of one second.
    """
    entries = [get_mapping(each) for each in get_sequence(_get(new, _MANAGED))]
    known = get_sequence(_get(old, _MANAGED))
    changed = [each for each in entries if each not in known]
    owning = [each for each in entries if _owns(get_mapping(each.get("fieldsV1")), path)]
    both = [each for each in owning if each in changed]
    found = both or (owning if _exists(new, path) else []) or changed
    return ", ".join(dict.fromkeys(str(each.get("manager") or "") for each in found if each))


_MANAGED = ("metadata", "managedFields")


def _owns(fields: JSON, path: Path) -> bool:
    """Return whether managed fields contain a path, or a parent that they list as a whole."""
    for depth, key in enumerate(path):
        if not fields.keys() - {"."}:
            return depth > 0
        name = key if key.startswith(("k:", "v:")) else f"f:{key}"
        if name not in fields:
            return False
        fields = get_mapping(fields[name])
    return True


def _exists(obj: JSON, path: Path) -> bool:
    plain = tuple(key for key in path if not key.startswith(("k:", "v:")))
    return len(plain) < len(path) or _get(obj, plain) is not None


def _get(obj: JSON, path: Path) -> Any:
    found: Any = obj
    for key in path:
        found = get_mapping(found).get(key)
    return found


def _format_path(path: Path) -> str:
    """Return a path for display, such as ``status.conditions[Ready]``."""
    text = ""
    for key in path:
        if key.startswith("k:"):
            text += f"[{next(iter(json.loads(key[2:]).values()))}]"
        elif key.startswith("v:"):
            text += f"[{json.loads(key[2:])}]"
        else:
            text += f".{key}" if text else key
    return text
