"""State for each tenant, which is forgotten once it is no longer in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, ValuesView
from typing import Final, Generic, Protocol, TypeVar

_CHECKED: Final = 2
"""Number of entries that each new entry checks, so that more are forgotten than added."""


class CanBeIdle(Protocol):
    """Protocol for state that says whether it may be forgotten."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is lost if the state is created again."""
        ...


V = TypeVar("V", bound=CanBeIdle)


class IdleEntries(Generic[V]):
    """A dictionary whose idle entries are removed while others are added.

    Each new entry checks two others in turn.  A check of all of them would take quadratic time when
    thousands of clusters are reconciled for the first time.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[str, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> ValuesView[V]:
        """Return all entries, including idle ones that have not been removed yet."""
        return self._entries.values()

    def get(self, name: str, create: Callable[[], V]) -> V:
        """Return the entry with this name, creating it if necessary."""
        entry = self._entries.get(name)
        if entry is None:
            self._remove_idle()
            entry = self._entries[name] = create()
        return entry

    def _remove_idle(self) -> None:
        for _ in range(min(_CHECKED, len(self._entries))):
            name, entry = self._entries.popitem(last=False)
            if not entry.is_idle:
                self._entries[name] = entry
