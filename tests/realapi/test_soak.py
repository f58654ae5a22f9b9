"""A short form of ``python -m benchmarks.soak faults``: each fault once.

SOAK_SEED chooses another order of the faults.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from benchmarks.cluster import Cluster, install
from benchmarks.soak.faults import each_once, soak
from benchmarks.soak.hostile import EVENTS
from benchmarks.soak.invariants import Harm
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import Etcd
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from tests.e2e.tools.required import required_toolbox
from tests.realapi.conftest import NewServer

SEED = int(os.environ.get("SOAK_SEED", "1"))
PACE = 0.05


@pytest.fixture
def cluster(new_server: NewServer, etcd: Etcd, tmp_path: Path) -> Iterator[Cluster]:
    tools = required_toolbox("the soak", ["k8s", core_module(default_core())])
    pki = Pki(tmp_path / "pki")
    server = new_server("soak", pki)
    try:
        server.start()
        yield install(tools, server, etcd, pki, tmp_path)
    finally:
        server.stop()


def test_faults_lose_leak_and_duplicate_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """Proves: SM-09, IM-03, IM-25, MG-02."""
    events = each_once(Random(SEED))
    figures = soak(cluster, tmp_path, SEED, events=events, sync_seconds=5, pace=PACE)
    found = {each.name: each for each in figures}
    assert [name for name in EVENTS if found[name].value != 1] == []
    assert [f"{harm}: {found[harm].note}" for harm in Harm if found[harm].value] == []
    assert found["kills of managers in all"].value >= 3
    assert found["machines deleted"].value == found["machines created"].value >= 3 * len(events)
