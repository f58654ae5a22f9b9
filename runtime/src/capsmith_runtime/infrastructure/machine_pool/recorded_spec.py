"""Records on a pool's machine the spec from which the machine was created.

Defaulting webhooks, policies and users write into the specs of machines. A machine is outdated only
if its pool has changed since the machine was created, so the machine records a digest of each field
in the pool's spec.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object

_DIGITS: Final = 16


def build_record(spec: Object) -> str:
    """Return the annotation value for machines that are created from ``spec``."""
    digests = {name: _digest(value) for name, value in spec.items()}
    return json.dumps(digests, sort_keys=True, separators=(",", ":"))


def is_outdated(record: str, found: Object, desired: Object) -> bool:
    """Return whether a machine was created from a pool spec that differs from ``desired``.

    ``record`` is the machine's annotation, and ``found`` is the machine's spec.  If a field differs
    from the record but matches the machine, the pool was not changed: a new version of the CRD has
    renamed the field, or added a default to pool and machine alike.

    Machines of providers built with capsmith 0.2 have no record; for them, fields that the pool
    does not set count as filled in by others.
    """
    recorded = metadata.parse_object(record)
    if recorded is None:
        return any(found.get(name) != value for name, value in desired.items())
    changed = {name for name, value in desired.items() if recorded.get(name) != _digest(value)}
    removed = recorded.keys() - desired.keys()
    return any(desired.get(name) != found.get(name) for name in changed | removed)


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:_DIGITS]
