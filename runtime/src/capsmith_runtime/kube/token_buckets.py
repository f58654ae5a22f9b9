"""Token buckets for keys, such as the namespaces or clients that cause work."""

from __future__ import annotations

from collections import OrderedDict

from capsmith_runtime.kube.clock import monotonic


class TokenBuckets:
    """A token bucket for each key, so that a key without tokens left does not affect the others."""

    def __init__(self, per_second: float, burst: int, maximum: int) -> None:
        """Initialise without keys; the bucket of a new key is full and holds ``burst`` tokens.

        At most ``maximum`` keys are remembered; the least recently used one is dropped.
        """
        self._per_second = per_second
        self._burst = float(burst)
        self._maximum = maximum
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The tokens left for each key, and the time at which they were counted."""

    def take(self, key: str) -> bool:
        """Take a token from a key's bucket, or return False immediately if the bucket is empty."""
        now = monotonic()
        # Removed and inserted again, so that the first key is the least recently used one. A key
        # that was dropped starts with a full bucket: the maximum bounds memory, not the rate.
        tokens, counted = self._buckets.pop(key, (self._burst, now))
        tokens = min(self._burst, tokens + (now - counted) * self._per_second)
        has_token = tokens >= 1.0
        self._buckets[key] = (tokens - 1.0 if has_token else tokens, now)
        if len(self._buckets) > self._maximum:
            self._buckets.popitem(last=False)
        return has_token
