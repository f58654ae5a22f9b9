"""A short form of ``python -m benchmarks.soak faults``: each sort of fault once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.cluster import Cluster, install
from benchmarks.soak.faults import soak
from benchmarks.soak.hostile import EVENTS
from tests.e2e.harness.components import Etcd
from tests.e2e.harness.pki import Pki
from tests.e2e.tools.required import required_toolbox
from tests.realapi.conftest import NewServer

_LONG = {"connections half open"}
"""Watches notice it after 90 seconds."""
_SEED = 1
_PACE = 0.1


@pytest.fixture
def cluster(new_server: NewServer, etcd: Etcd, tmp_path: Path) -> Iterator[Cluster]:
    tools = required_toolbox("the soak", ["k8s", "capi-v1.13"])
    pki = Pki(tmp_path / "pki")
    server = new_server("soak", pki)
    try:
        server.start()
        yield install(tools, server, etcd, pki, tmp_path)
    finally:
        server.stop()


def test_faults_lose_leak_and_duplicate_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Proves: SM-09, IM-03, IM-25, MG-02."""
    events = [name for name in EVENTS if name not in _LONG]
    figures = soak(cluster, tmp_path, _SEED, events=events, sync_seconds=5, pace=_PACE)
    happened = {each.name: each.value for each in figures}
    assert [name for name in events if happened.get(name) != 1.0] == []
    violations = figures[-1]
    assert violations.value == 0, violations.note
    assert happened["servers created"] >= 3 * len(events)
