"""One object in detail: conditions, owners, YAML, changes since its last version, events."""

from __future__ import annotations

import difflib

import yaml

from capsmith.clusters.conditions import JSON, get_mapping, get_sequence, list_conditions
from capsmith.clusters.hiding import hide_secrets
from capsmith.clusters.lab.page.model.reason import describe_reason
from capsmith.clusters.lab.page.model.store import (
    ObjectStore,
    StoredObject,
    get_event_time,
    list_owners,
)

_MAX_YAML = 200_000
"""Maximum length of an object's YAML, in characters; the rest is not shown."""


def describe_object(store: ObjectStore, found: StoredObject) -> JSON:
    """Return everything that the page shows about an object, as JSON data."""
    obj, metadata = found.data, get_mapping(found.data.get("metadata"))
    return {
        "id": found.key.id,
        "kind": found.key.kind,
        "name": found.key.name,
        "namespace": found.key.namespace,
        "created": str(metadata.get("creationTimestamp") or ""),
        "deleting": str(metadata.get("deletionTimestamp") or ""),
        "state": found.summary.state,
        "tone": found.summary.tone,
        "waiting": describe_reason(store, found),
        "paused": found.summary.is_paused,
        "versions": _describe_versions(store, found),
        "conditions": [vars(each) for each in list_conditions(hide_secrets(obj))],
        "owners": [_owner(store, each) for each in list_owners(obj)],
        "finalizers": [str(each) for each in get_sequence(metadata.get("finalizers"))],
        "yaml": format_yaml(obj),
        "difference": diff_versions(found.previous, obj),
        "events": [_event(each) for each in store.list_events(found)],
    }


def format_yaml(obj: JSON) -> str:
    """Return an object as YAML without managed fields and secrets, truncated if too long."""
    if (str(obj.get("apiVersion")), obj.get("kind")) == ("v1", "Secret"):
        obj = {**obj, "data": None, "stringData": None}
    text = yaml.safe_dump(hide_secrets(obj), sort_keys=False, allow_unicode=True, width=100)
    if len(text) > _MAX_YAML:
        return f"{text[:_MAX_YAML]}\n# cut after {_MAX_YAML} characters\n"
    return text


def diff_versions(before: JSON | None, now: JSON) -> list[str]:
    """Return the lines that changed between two versions of an object, with context lines.

    Lines start with ``+``, ``-``, ``@@`` or a space.  Returns an empty list if ``before`` is None,
    or if no visible part has changed.
    """
    if before is None:
        return []
    old, new = (format_yaml(_without_counters(each)).splitlines() for each in (before, now))
    return list(difflib.unified_diff(old, new, lineterm=""))[2:]


def _without_counters(obj: JSON) -> JSON:
    metadata = {
        key: value
        for key, value in get_mapping(obj.get("metadata")).items()
        if key not in ("resourceVersion", "generation")
    }
    return {**obj, "metadata": metadata}


def _describe_versions(store: ObjectStore, found: StoredObject) -> list[JSON]:
    served = store.types.get((found.key.group, found.key.kind))
    lines = [("Read in", str(found.data.get("apiVersion") or ""))]
    if served is not None and served.stored:
        lines.append(("Stored in", f"{found.key.group}/{served.stored}"))
    if served is not None and served.contracts:
        lines.append(("Contracts", ", ".join(served.contracts)))
    writers: dict[str, set[str]] = {}
    metadata = get_mapping(found.data.get("metadata"))
    for each in map(get_mapping, get_sequence(metadata.get("managedFields"))):
        writers.setdefault(str(each.get("manager")), set()).add(str(each.get("apiVersion")))
    for manager, versions in sorted(writers.items()):
        lines.append((f"Written by {manager} in", ", ".join(sorted(versions))))
    return [{"name": name, "value": value} for name, value in lines]


def _owner(store: ObjectStore, owner: JSON) -> JSON:
    found = store.find_uid(str(owner.get("uid") or ""))
    return {
        "id": found.key.id if found else "",
        "kind": str(owner.get("kind") or ""),
        "name": str(owner.get("name") or ""),
        "controller": bool(owner.get("controller")),
    }


def _event(event: JSON) -> JSON:
    shown = hide_secrets(event)
    source = get_mapping(shown.get("source")).get("component") or shown.get("reportingComponent")
    return {
        "time": get_event_time(event),
        "type": str(shown.get("type") or ""),
        "reason": str(shown.get("reason") or ""),
        "message": str(shown.get("message") or ""),
        "source": str(source or ""),
        "count": int(shown.get("count") or 1),
    }
