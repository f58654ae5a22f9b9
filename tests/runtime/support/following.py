"""A client and an informer of the runtime, and a handler that checks its changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lightkube import KubeConfig, SingleConfig

from capsmith_runtime.kube.client import (
    JSON,
    NamespacedName,
    ResourceType,
    Selection,
    key_of,
    version_of,
)
from capsmith_runtime.kube.clock import Backoff
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.store import Delta

from .waiting import running

WIDGET = ResourceType("runtime.capsmith.test", "v1", "Widget", "widgets")


@dataclass
class Follower:
    """Applies changes as a consumer would, and records inconsistent ones."""

    objects: dict[NamespacedName, JSON] = field(default_factory=dict)
    changes: list[Delta] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def __call__(self, change: Delta) -> None:
        known = self.objects.get(change.key)
        if known != change.old:
            self.faults.append(f"{change.key}: changed from what it never was")
        if change.new is None:
            self.objects.pop(change.key, None)
        else:
            if known is not None and version_of(change.new) < version_of(known):
                self.faults.append(f"{change.key}: back in time")
            self.objects[change.key] = change.new
        self.changes.append(change)


@dataclass
class Following:
    """A running informer and everything that belongs to it."""

    client: LightkubeClient
    informer: Informer
    follower: Follower
    metrics: Metrics

    def names(self) -> set[str]:
        return {obj["metadata"]["name"] for obj in self.informer.items()}

    async def synced(self) -> None:
        """Wait until everything has been listed once."""
        await asyncio.wait_for(self.informer.synced.wait(), 60)

    def restarts(self, cause: str) -> float:
        return sample(self.metrics, f'informer_restarts_total{{cause="{cause}",kind="Widget"}}')

    def agrees_with(self, listed: list[dict[str, Any]]) -> bool:
        """Return whether the cache and the folded changes equal a list from the server."""
        assert self.follower.faults == []
        cached = {key_of(obj): _identity(obj) for obj in self.informer.items()}
        folded = {key: _identity(obj) for key, obj in self.follower.objects.items()}
        assert cached == folded
        return cached == {key_of(obj): _identity(obj) for obj in listed}


def connect(kubeconfig: Path, metrics: Metrics | None = None, **options: Any) -> LightkubeClient:
    def config() -> SingleConfig:
        found = KubeConfig.from_file(kubeconfig).get()
        assert found is not None
        return found

    return LightkubeClient(metrics or Metrics(), field_manager="tests", config=config, **options)


@asynccontextmanager
async def connected(
    kubeconfig: Path, metrics: Metrics | None = None, **options: Any
) -> AsyncIterator[LightkubeClient]:
    client = connect(kubeconfig, metrics, **options)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def following(
    kubeconfig: Path,
    selection: Selection | Sequence[Selection],
    *,
    informer: Any = None,
    **options: Any,
) -> AsyncIterator[Following]:
    """Return a context manager with a running informer of Widgets; options are the client's."""
    metrics, follower = Metrics(), Follower()
    async with connected(kubeconfig, metrics, **options) as client:
        made = Informer(
            client,
            WIDGET,
            metrics,
            selection=selection,
            **{"backoff": Backoff(base=0.02, limit=0.2), **(informer or {})},
        )
        made.add_handler(follower)
        async with running(made.run()):
            yield Following(client, made, follower, metrics)


def sample(metrics: Metrics, name: str) -> float:
    """Return the value of one line of the text exposition; 0 if the line is missing."""
    for line in metrics.render().decode().splitlines():
        label, _, value = line.rpartition(" ")
        if label == name:
            return float(value)
    return 0.0


def _identity(obj: JSON) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]
