"""Kubernetes events, rate-limited and without duplicates, sent without blocking the caller."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from datetime import UTC, datetime

from capsmith_runtime.errors import ApiError
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.hidden_values import redact
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.token_buckets import TokenBuckets

EVENT = ResourceType("events.k8s.io", "v1", "Event", "events")

_NOTE_BYTES = 1024
_REASON_CHARACTERS = 128
_REMEMBERED = 1000
_QUEUED = 1000


class EventRecorder:
    """Sends events in the background; drops duplicates and bursts from a single namespace."""

    def __init__(
        self,
        client: KubeClient,
        controller: str,
        instance: str,
        metrics: Metrics,
        *,
        repeat_seconds: float = 600.0,
        burst: int = 25,
        per_second: float = 1.0,
    ) -> None:
        self._client = client
        self._controller = controller
        self._instance = instance[:128]
        self._metrics = metrics
        self._repeat_seconds = repeat_seconds
        # By namespace: an outage of one tenant must not silence the others.
        self._buckets = TokenBuckets(per_second, burst, _REMEMBERED)
        self._sent: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._queue: asyncio.Queue[JSON] = asyncio.Queue(maxsize=max(_QUEUED, burst))

    def warn(self, obj: JSON, reason: str, note: str, *, action: str = "Reconcile") -> None:
        """Queue a warning about `obj` and return immediately; see `record`."""
        self.record(obj, "Warning", reason, note, action=action)

    def record(
        self, obj: JSON, type_: str, reason: str, note: str, *, action: str = "Reconcile"
    ) -> None:
        """Queue an event about `obj` and return immediately.

        Repetitions are dropped without an error, as are events beyond the rate limit or the queue
        size.
        """
        note = redact(note).encode(errors="replace")[:_NOTE_BYTES].decode(errors="ignore")
        now, mark = monotonic(), (obj["metadata"]["uid"], reason, note)
        if now - self._sent.get(mark, -self._repeat_seconds) < self._repeat_seconds:
            self._metrics.events_dropped.labels("repeated").inc()
        elif not self._buckets.take(obj["metadata"].get("namespace", "")) or self._queue.full():
            self._metrics.events_dropped.labels("rate").inc()
        else:
            self._sent[mark] = now
            self._sent.move_to_end(mark)
            if len(self._sent) > _REMEMBERED:
                self._sent.popitem(last=False)
            self._queue.put_nowait(self._event(obj, type_, reason, note, action))

    async def run(self) -> None:
        """Send queued events to the API server until the task is cancelled."""
        while True:
            event = await self._queue.get()
            try:
                await self._client.create(EVENT, event)
            except ApiError:
                # Events are optional: the failure itself is logged and retried anyway.
                self._metrics.events_dropped.labels("refused").inc()

    def _event(self, obj: JSON, type_: str, reason: str, note: str, action: str) -> JSON:
        metadata = obj["metadata"]
        # The API server requires events of cluster-scoped objects in "default".
        namespace = metadata.get("namespace") or "default"
        regarding = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
            "resourceVersion": metadata.get("resourceVersion", ""),
        }
        if metadata.get("namespace"):
            regarding["namespace"] = namespace
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "namespace": namespace,
                # A shortened name may end with a character that is invalid before the next dot.
                "name": f"{metadata['name'][:200].rstrip('.-')}.{uuid.uuid4().hex[:16]}",
            },
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": type_,
            "reason": reason[:_REASON_CHARACTERS],
            "action": action,
            "note": note,
            "regarding": regarding,
            "reportingController": self._controller,
            "reportingInstance": self._instance,
        }
