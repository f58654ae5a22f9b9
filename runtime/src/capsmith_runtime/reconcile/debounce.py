"""Debounce status writes: a short wait is not written into the status."""

from __future__ import annotations

from collections.abc import Callable

from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.kube.clock import monotonic


class StatusDebounce:
    """Track since when each object waits, and for what; a restart may forget it."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[NamespacedName, tuple[str, float]] = {}

    def left(self, key: NamespacedName, reason: str) -> float:
        """Return the seconds until a wait for ``reason`` is written; 0 means now."""
        known, since = self._since.get(key, ("", 0.0))
        if known != reason:
            since = self._clock()
            self._since[key] = (reason, since)
        return max(0.0, since + self._seconds - self._clock())

    def forget(self, key: NamespacedName) -> None:
        """Forget the wait of an object."""
        self._since.pop(key, None)
