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
    """Waiting keys without duplicates.  A key that is added again keeps the higher priority.

    While keys of both priorities wait, every ``LOW_SHARE``-th one taken is of low priority: the
    n-th of them is taken within ``n * LOW_SHARE`` turns.
    """

    def __init__(self) -> None:
        self._waiting: dict[Priority, OrderedDict[K, None]] = {
            priority: OrderedDict() for priority in Priority
        }
        self._turn = 0

    def __len__(self) -> int:
        return sum(len(keys) for keys in self._waiting.values())

    def push(self, key: K, priority: Priority) -> None:
        """Append a key; one that waits with low priority moves up if it is added with normal."""
        low, normal = self._waiting[Priority.LOW], self._waiting[Priority.NORMAL]
        if key in normal:
            return
        if priority is Priority.NORMAL:
            low.pop(key, None)
        self._waiting[priority][key] = None

    def pop(self) -> tuple[K, Priority]:
        """Remove and return the next key; raises KeyError if none waits."""
        low, normal = self._waiting[Priority.LOW], self._waiting[Priority.NORMAL]
        if not low or not normal:
            self._turn = 0
            priority = Priority.LOW if low else Priority.NORMAL
        else:
            self._turn = (self._turn + 1) % LOW_SHARE
            priority = Priority.NORMAL if self._turn else Priority.LOW
        key, _ = self._waiting[priority].popitem(last=False)
        return key, priority

    def clear(self) -> None:
        """Remove all keys."""
        for keys in self._waiting.values():
            keys.clear()
