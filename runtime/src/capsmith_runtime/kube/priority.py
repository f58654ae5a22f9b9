"""Keys in two priorities, first in, first out within each."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from enum import IntEnum
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

LOW_SHARE: Final = 5
"""Every fifth key is one of low priority while any waits, so none of them waits forever."""


class Priority(IntEnum):
    """How urgent a reconcile is."""

    LOW = 0
    """Nothing is known to have changed for this object: first list, resync, shared settings."""
    NORMAL = 1
    """The object, or something that it waits for, has changed."""


class PriorityFifo(Generic[K]):
    """Waiting keys without duplicates.  A key that is added again keeps the better place.

    Keys of low priority that are added as first come before the others of low priority.  While keys
    of both priorities wait, every ``LOW_SHARE``-th one taken is of low priority: the
    n-th of them is taken within ``n * LOW_SHARE`` turns.
    """

    def __init__(self) -> None:
        self._normal: OrderedDict[K, None] = OrderedDict()
        self._first: OrderedDict[K, None] = OrderedDict()
        self._low: OrderedDict[K, None] = OrderedDict()
        self._turn = 0

    def __len__(self) -> int:
        return len(self._normal) + len(self._first) + len(self._low)

    def push(self, key: K, priority: Priority, *, is_first: bool = False) -> None:
        """Append a key; one that waits moves up if it is added with a better place."""
        if key in self._normal:
            return
        if priority is Priority.NORMAL:
            self._first.pop(key, None)
            self._low.pop(key, None)
            self._normal[key] = None
        elif is_first:
            self._low.pop(key, None)
            self._first[key] = None
        elif key not in self._first:
            self._low[key] = None

    def pop(self) -> tuple[K, Priority]:
        """Remove and return the next key; raises KeyError if none waits."""
        low, normal = self._first or self._low, self._normal
        if not low or not normal:
            self._turn = 0
            priority = Priority.LOW if low else Priority.NORMAL
        else:
            self._turn = (self._turn + 1) % LOW_SHARE
            priority = Priority.NORMAL if self._turn else Priority.LOW
        keys = low if priority is Priority.LOW else normal
        return keys.popitem(last=False)[0], priority

    def clear(self) -> None:
        """Remove all keys."""
        for keys in (self._normal, self._first, self._low):
            keys.clear()
