"""The lock of a Cluster that is initialised is deleted once, whatever the number of Clusters."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from capsmith_runtime.bootstrap import init_lock
from capsmith_runtime.bootstrap.init_lock import ControlPlaneInitMutex
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.core import core_cluster
from capsmith_runtime.testing.fake_api import FakeApi
from tests.runtime.bootstrap.scripted_provider import PROVIDER


def test_only_so_many_clusters_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was forgotten costs one more request."""

    async def scenario() -> None:
        api = FakeApi("v1beta2", PROVIDER.manifests)
        lock = ControlPlaneInitMutex(api, "v1beta2")
        for name in ("a", "b", "c", "c", "b", "a"):
            await lock.release(core_cluster(name))
        requests = Counter(key.name for _, _, key in api.requests)
        assert requests == {"a-lock": 2, "b-lock": 1, "c-lock": 1}
        await lock.release(replace(core_cluster("a"), uid="another"))
        assert len(api.requests) == 5

    monkeypatch.setattr(init_lock, "_MAX_RELEASED", 2)
    clock.run(scenario())
