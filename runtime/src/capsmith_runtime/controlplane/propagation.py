"""In-place propagation of the machine template's metadata, without a rollout (CP-20).

Only keys of the template are written; keys that the template no longer has are removed, and
labels and annotations of others stay.  The propagated keys are recorded in an annotation of the
object itself: ``clusterctl move`` keeps annotations, but not managed fields.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object

Metadata = Mapping[str, Mapping[str, str]]
"""``labels`` and ``annotations``."""

_PARTS = ("labels", "annotations")
_EMPTY = "{}"


def propagate(obj: Object, template: Metadata, annotation: str) -> dict[str, Any]:
    """Return the whole new metadata of an object."""
    changed = dict(metadata.mapping(obj, "metadata"))
    previous = _recorded(obj, annotation)
    for part in _PARTS:
        values = dict(metadata.mapping(changed, part))
        for key, value_digest in previous.get(part, {}).items():
            # A value that was changed since then belongs to its new writer.
            removed = key not in template.get(part, {}) and key in values
            if removed and _digest(values[key]) == value_digest:
                del values[key]
        changed[part] = {**values, **template.get(part, {})}
    record = _record(template)
    if record != metadata.annotations(obj).get(annotation, _EMPTY):
        changed["annotations"] = {**changed["annotations"], annotation: record}
    return changed


def initial_metadata(
    own: Metadata, template: Metadata, annotation: str
) -> dict[str, dict[str, str]]:
    """Return the metadata of a new object; its own values win over those of the template."""
    merged = {part: {**template.get(part, {}), **own.get(part, {})} for part in _PARTS}
    if any(template.get(part) for part in _PARTS):
        merged["annotations"][annotation] = _record(template)
    return {part: values for part, values in merged.items() if values}


def _recorded(obj: Object, annotation: str) -> dict[str, dict[str, str]]:
    try:
        record = json.loads(metadata.annotations(obj).get(annotation, _EMPTY))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _record(template: Metadata) -> str:
    digests = {
        part: {key: _digest(value) for key, value in template[part].items()}
        for part in _PARTS
        if template.get(part)
    }
    return json.dumps(digests, sort_keys=True, separators=(",", ":"))


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()[:8]
