"""Objects that are kept as encoded JSON, and decoded when they are read.

A decoded object takes about four times the memory, and consists of dozens of containers.  Every
full garbage collection visits each of them while the event loop waits.  A manager with 10,000
machines reads few of its objects at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import overload
from weakref import WeakValueDictionary

import msgspec

from capsmith_runtime.kube.client import JSON, NamespacedName, version_of


class _Decoded(JSON):
    """An object that weak references can refer to."""

    __slots__ = ("__weakref__",)


# Not tracked by the garbage collector: the fields refer to nothing that could refer back.
class _Entry(msgspec.Struct, frozen=True, gc=False):
    namespace: str
    name: str
    version: int
    data: bytes

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)


class EncodedObjects:
    """A dictionary of objects, which are decoded when they are read.

    While a caller holds an object that it has read, further reads return the same instance.  An
    object that is identical (``is``) to one that was read earlier has therefore not been replaced.
    """

    def __init__(self) -> None:
        # Strings rather than tuples as keys: the garbage collector skips a dictionary if it tracks
        # none of its keys and values.
        self._entries: dict[str, _Entry] = {}
        self._decoded: WeakValueDictionary[str, JSON] = WeakValueDictionary()
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(JSON)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, key: NamespacedName) -> JSON:
        return self._decode(self._entries[create_id(key)])

    def versions(self) -> Iterator[tuple[NamespacedName, int]]:
        """Yield the key and the resource version of each object."""
        return ((entry.key, entry.version) for entry in self._entries.values())

    def version(self, key: NamespacedName) -> int | None:
        """Return an object's resource version without decoding it, or None if not stored."""
        entry = self._entries.get(create_id(key))
        return None if entry is None else entry.version

    def get(self, key: NamespacedName) -> JSON | None:
        """Return an object, or None if it is not stored."""
        entry = self._entries.get(create_id(key))
        return None if entry is None else self._decode(entry)

    def find_others(self, other: EncodedObjects) -> list[tuple[NamespacedName, int]]:
        """Return the key and the resource version of each object that ``other`` lacks."""
        ids = self._entries.keys() - other._entries.keys()
        return [(self._entries[each].key, self._entries[each].version) for each in ids]

    def put(self, key: NamespacedName, obj: JSON) -> None:
        """Add or replace an object."""
        found = create_id(key)
        # Each decoded object has its own copy of the string for one of a few namespaces.
        namespace, data = sys.intern(key.namespace), self._encoder.encode(obj)
        self._entries[found] = _Entry(namespace, key.name, version_of(obj), data)
        self._decoded.pop(found, None)

    def share(self, key: NamespacedName, other: EncodedObjects) -> None:
        """Add an object from ``other`` without copying its JSON."""
        found = create_id(key)
        self._entries[found] = other._entries[found]

    def pop(self, key: NamespacedName) -> None:
        """Remove an object, if it is stored."""
        found = create_id(key)
        self._entries.pop(found, None)
        self._decoded.pop(found, None)

    def select(self, ids: Iterable[str] | None = None) -> Sequence[JSON]:
        """Return the objects with these ids, or all objects; each is decoded when it is read.

        Later changes do not affect the result. Two results are equal if their objects are equal;
        the comparison does not decode them.
        """
        if ids is None:
            return _Selected(self, list(self._entries.values()))
        return _Selected(self, [self._entries[each] for each in ids])

    def find_keys_in(self, namespace: str) -> list[NamespacedName]:
        """Return the keys of all objects in a namespace."""
        return [entry.key for entry in self._entries.values() if entry.namespace == namespace]

    def find_keys(self, ids: Iterable[str]) -> list[NamespacedName]:
        """Return the keys of the objects with these ids."""
        return [self._entries[each].key for each in ids]

    def _decode(self, entry: _Entry) -> JSON:
        found = f"{entry.namespace}/{entry.name}"
        is_current = self._entries.get(found) is entry
        if is_current and (known := self._decoded.get(found)) is not None:
            return known
        obj = _Decoded(self._decoder.decode(entry.data))
        if is_current:
            self._decoded[found] = obj
        return obj


def create_id(key: NamespacedName) -> str:
    """Return ``namespace/name``, the internal key of an object; names cannot contain a slash."""
    return f"{key[0]}/{key[1]}"


class _Selected(Sequence[JSON]):
    """Objects as they were at the time of the selection."""

    def __init__(self, objects: EncodedObjects, entries: list[_Entry]) -> None:
        self._objects = objects
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other: object) -> bool:
        # Entries that have not been replaced are identical: nothing is decoded to compare them.
        return isinstance(other, _Selected) and self._entries == other._entries

    def __iter__(self) -> Iterator[JSON]:
        return map(self._objects._decode, self._entries)

    @overload
    def __getitem__(self, index: int) -> JSON: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[JSON]: ...

    def __getitem__(self, index: int | slice) -> JSON | Sequence[JSON]:
        if isinstance(index, slice):
            return _Selected(self._objects, self._entries[index])
        return self._objects._decode(self._entries[index])
