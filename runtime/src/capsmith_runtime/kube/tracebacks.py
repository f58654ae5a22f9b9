"""Limit tracebacks in the log: during an outage every object fails with the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.executor import handler_of

_SECONDS: Final = 60.0


class TracebackLimiter:
    """Allows one traceback a minute for each handler and type of exception."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._logged: dict[tuple[str, type[BaseException]], float] = {}

    def of(self, error: BaseException) -> BaseException | None:
        """Return what to pass as `exc_info`: the error, or None if its traceback was logged."""
        key, now = (handler_of(error), type(error)), self._clock()
        if now - self._logged.get(key, -_SECONDS) < _SECONDS:
            return None
        self._logged[key] = now
        return error
