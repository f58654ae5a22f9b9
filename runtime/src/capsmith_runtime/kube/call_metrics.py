"""The number and duration of author calls, by method, kind and identity."""

from __future__ import annotations

import contextlib
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Final

from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.metrics import Metrics

MAX_IDENTITIES: Final = 200
"""Maximum number of pairs of kind and identity with metrics.

Identities of short-lived namespaces would otherwise add time series for as long as a manager runs.
"""


class CallMetrics:
    """Measures calls; the pair of kind and identity that was idle longest makes room for others."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._running = Counter[tuple[str, str]]()
        self._known: OrderedDict[tuple[str, str], None] = OrderedDict()

    @contextlib.contextmanager
    def measure(self, controller: str, hook: str, identity: str) -> Iterator[None]:
        """Count a call as in flight inside the context, and observe how long it takes."""
        pair = controller, identity
        self._admit(pair)
        self._running[pair] += 1
        in_flight = self._metrics.identity_calls.labels(*pair)
        in_flight.inc()
        began = monotonic()
        try:
            with self._metrics.hooks_in_flight.labels(hook).track_inprogress():
                yield
        finally:
            seconds = monotonic() - began
            self._metrics.hook_seconds.labels(controller, hook).observe(seconds)
            self._metrics.identity_seconds.labels(*pair).observe(seconds)
            in_flight.dec()
            self._running[pair] -= 1
            if not self._running[pair]:
                del self._running[pair]

    def _admit(self, pair: tuple[str, str]) -> None:
        self._known[pair] = None
        self._known.move_to_end(pair)
        if len(self._known) <= MAX_IDENTITIES:
            return
        # A pair with running calls keeps its series: its gauge could not be decremented later.
        eldest = next((each for each in self._known if each not in self._running), pair)
        if eldest != pair:
            del self._known[eldest]
            self._metrics.identity_calls.remove(*eldest)
            self._metrics.identity_seconds.remove(*eldest)
