"""Waiting keys without duplicates, in the order in which they are taken."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Generic

from capsmith_runtime.kube.delayed_keys import K
from capsmith_runtime.kube.requeue import Priority

LOW_SHARE: Final = 5
"""One in this many keys taken has low priority, so that no such key starves."""


class NamespaceFifo(Generic[K]):
    """Waiting keys without duplicates: namespaces are taken in turn, and their keys in order.

    A namespace in which hundreds of objects change at once does not delay those of the others. Keys
    without a namespace are in one turn.
    """

    def __init__(self) -> None:
        self._namespaces: OrderedDict[str, OrderedDict[K, None]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: K) -> bool:
        return key in self._namespaces.get(_namespace_of(key), ())

    def push(self, key: K) -> None:
        """Append a key to those of its namespace, unless it is already waiting."""
        keys = self._namespaces.setdefault(_namespace_of(key), OrderedDict())
        if key not in keys:
            keys[key] = None
            self._length += 1

    def pop(self) -> K:
        """Remove and return the first key of the namespace whose turn it is.

        Raises KeyError if no key waits.
        """
        namespace, keys = self._namespaces.popitem(last=False)
        key, _ = keys.popitem(last=False)
        self._length -= 1
        if keys:
            self._namespaces[namespace] = keys
        return key

    def discard(self, key: K) -> None:
        """Remove a key, if it is waiting."""
        namespace = _namespace_of(key)
        keys = self._namespaces.get(namespace)
        if keys is None or key not in keys:
            return
        del keys[key]
        self._length -= 1
        if not keys:
            del self._namespaces[namespace]

    def clear(self) -> None:
        """Remove all keys."""
        self._namespaces.clear()
        self._length = 0


def _namespace_of(key: object) -> str:
    return getattr(key, "namespace", "")


class PriorityFifo(Generic[K]):
    """Waiting keys without duplicates; a key that is added again keeps the better position.

    Low-priority keys that are added with ``is_first`` come before the other low-priority keys.
    While keys of both priorities wait, every ``LOW_SHARE``-th key taken has low priority, so the
    n-th low-priority key of a namespace is taken within ``n * LOW_SHARE`` turns for each namespace
    that waits.
    """

    def __init__(self) -> None:
        self._normal = NamespaceFifo[K]()
        self._first = NamespaceFifo[K]()
        self._low = NamespaceFifo[K]()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._normal) + len(self._first) + len(self._low)

    def push(self, key: K, priority: Priority, *, is_first: bool = False) -> None:
        """Append a key; a key that is already waiting moves up if its new position is better."""
        if key in self._normal:
            return
        if priority is Priority.NORMAL:
            self._first.discard(key)
            self._low.discard(key)
            self._normal.push(key)
        elif is_first:
            self._low.discard(key)
            self._first.push(key)
        elif key not in self._first:
            self._low.push(key)

    def pop(self) -> tuple[K, Priority]:
        """Remove and return the next key.

        Raises KeyError if no key waits.
        """
        # Low priority has a share of the turns rather than the leftovers: in a cluster where
        # something changes all the time, periodic resyncs would otherwise never run.
        low, normal = self._first or self._low, self._normal
        if not low or not normal:
            self._turn = 0
            priority = Priority.LOW if low else Priority.NORMAL
        else:
            self._turn = (self._turn + 1) % LOW_SHARE
            priority = Priority.NORMAL if self._turn else Priority.LOW
        keys = low if priority is Priority.LOW else normal
        return keys.pop(), priority

    def clear(self) -> None:
        """Remove all waiting keys."""
        for keys in (self._normal, self._first, self._low):
            keys.clear()
