"""Objects that are kept as encoded JSON, and decoded when they are read.

Decoded, an object takes about four times the memory, and consists of dozens of containers, each of
which every full garbage collection visits while the event loop waits.  A manager with 10,000
machines reads few of its objects at a time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, KeysView, Sequence
from typing import overload
from weakref import WeakValueDictionary

import msgspec

from capsmith_runtime.kube.client import JSON, NamespacedName, version_of


class _Decoded(JSON):
    """An object that weak references can refer to."""

    __slots__ = ("__weakref__",)


# Without tracking by the garbage collector: the fields refer to nothing that could refer back.
class _Entry(msgspec.Struct, frozen=True, gc=False):
    key: NamespacedName
    version: int
    data: bytes


class EncodedObjects:
    """A dictionary of objects, which are decoded when they are read.

    While a caller keeps an object that was read, further reads return the same one: if an object is
    identical to one that was read earlier, it has not been replaced.
    """

    def __init__(self) -> None:
        self._entries: dict[NamespacedName, _Entry] = {}
        self._decoded: WeakValueDictionary[NamespacedName, JSON] = WeakValueDictionary()
        self._encoder = msgspec.json.Encoder()
        self._decoder = msgspec.json.Decoder(JSON)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, key: NamespacedName) -> JSON:
        return self._decode(self._entries[key])

    def keys(self) -> KeysView[NamespacedName]:
        """Return the keys of all objects, as a view."""
        return self._entries.keys()

    def versions(self) -> Iterator[tuple[NamespacedName, int]]:
        """Yield the key and the resource version of each object."""
        return ((key, entry.version) for key, entry in self._entries.items())

    def version(self, key: NamespacedName) -> int | None:
        """Return an object's resource version without decoding it; None if there is no object."""
        entry = self._entries.get(key)
        return None if entry is None else entry.version

    def get(self, key: NamespacedName) -> JSON | None:
        """Return an object; None if there is none."""
        entry = self._entries.get(key)
        return None if entry is None else self._decode(entry)

    def put(self, key: NamespacedName, obj: JSON) -> NamespacedName:
        """Add or replace an object; return the key to use in indexes, which takes no memory."""
        if key in self._entries:
            key = self._entries[key].key
        else:
            # Each decoded object has a string of its own for the same few namespaces.
            key = NamespacedName(sys.intern(key.namespace), key.name)
        self._decoded.pop(key, None)
        self._entries[key] = _Entry(key, version_of(obj), self._encoder.encode(obj))
        return key

    def share(self, key: NamespacedName, other: EncodedObjects) -> None:
        """Add an object that ``other`` has, without another copy of its JSON."""
        self._entries[key] = other._entries[key]

    def pop(self, key: NamespacedName) -> None:
        """Remove an object."""
        self._entries.pop(key, None)
        self._decoded.pop(key, None)

    def select(self, keys: Iterable[NamespacedName] | None = None) -> Sequence[JSON]:
        """Return the objects with these keys, or all; each is decoded when it is read.

        Later changes do not affect the result. Two results are equal if their objects are; the
        comparison decodes none.
        """
        if keys is None:
            return _Selected(self, list(self._entries.values()))
        return _Selected(self, [self._entries[key] for key in keys])

    def _decode(self, entry: _Entry) -> JSON:
        is_current = self._entries.get(entry.key) is entry
        if is_current and (known := self._decoded.get(entry.key)) is not None:
            return known
        obj = _Decoded(self._decoder.decode(entry.data))
        if is_current:
            self._decoded[entry.key] = obj
        return obj


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
