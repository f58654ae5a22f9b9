"""External ids, which are stable ids that let the author's code find its infrastructure.

``clusterctl move`` changes an object's uid but keeps its annotations.  The id is therefore written
once, together with the finalizer and before the first side effect, and never changes for the same
object (SM-09).
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final

from capsmith_runtime.contract import metadata, records
from capsmith_runtime.contract.model import Object

SHORT_CHARACTERS: Final = 32


def annotation(group: str) -> str:
    """Return the name of an API group's external id annotation."""
    return records.EXTERNAL_ID.build_annotation_name(group)


def create(obj: Object) -> str:
    """Return a new external id for an object: ``<name>.<uid>``."""
    return build(metadata.name(obj), metadata.uid(obj))


def build(name: str, uid: str) -> str:
    """Return the external id of a new object with this name and UID."""
    return f"{name}.{uid}"


def stored(obj: Object, group: str) -> str | None:
    """Return the stored external id, or None if there is none or it belongs to another object.

    An object that was copied from another one may still have that object's id.
    """
    value = records.read(obj, group, records.EXTERNAL_ID)
    # `kubectl get -o yaml` copies records to the new name. A UID contains no dot, but a name may.
    if value is None or value.rpartition(".")[0] != metadata.name(obj):
        return None
    return value


def of(obj: Object, group: str) -> str:
    """Return the stored external id, or the one that :func:`create` returns if none is stored.

    The object is not changed.
    """
    return stored(obj, group) or create(obj)


# Each change of an object needs the short form of its id before and after the change.
@lru_cache(maxsize=1024)
def shorten(external_id: str) -> str:
    """Return a short form of an external id: a lower-case DNS label that starts with a letter."""
    # A digest may begin with a digit, which DNS labels of RFC 1035 must not.
    return "c" + hashlib.sha256(external_id.encode()).hexdigest()[: SHORT_CHARACTERS - 1]
