"""Core goes to a newer release first, its clusters live on, and the provider follows later."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.wait import steadily
from tests.e2e.harness.report import Report
from tests.e2e.releases import BETWEEN, NEWEST, OLDEST
from tests.e2e.scenario import Scenario
from tests.e2e.topology import wait_reconciled
from tests.e2e.upgrade import Identity, UpgradedStack, identity, scale_topology
from tests.e2e.upgrade_checks import check_labels, wait_migrated
from tests.e2e.whole import WHOLE_SECONDS, crash, delete_and_check, wait_available

NAME = "contract-core-first"
_QUIET_SECONDS = 3.0


@pytest.fixture(scope="module")
def upgraded(base: Base, report: Report) -> Iterator[UpgradedStack]:
    made = UpgradedStack(base, NAME, report)
    try:
        yield made
    finally:
        made.stop()


# test_contract_upgrade.py upgrades core and the provider along the same releases together, and
# test_lifecycle.py runs providers of contract v1beta1 on the newest core.
@pytest.mark.exhaustive
def test_core_first(upgraded: UpgradedStack) -> None:
    """Proves: CC-07, GEN-10, SM-09."""
    stack = upgraded.stack
    with upgraded.cluster("classy") as cluster:
        with upgraded.phase(f"core {OLDEST}, v0.1: create a cluster of a class"):
            cluster.create(cluster.render(1, 1, flavor=stack.provider.topology_flavor))
            _wait_well(cluster, 2)
        with upgraded.phase("capsmith update --contract v1beta1,v1beta2"):
            release = upgraded.lineage.go_on("v0.2.0", "--contract", "v1beta1,v1beta2")
            stack.offer(release, BETWEEN, NEWEST)
        before = identity([cluster])
        with upgraded.phase(f"clusterctl upgrade apply: core {BETWEEN} alone"):
            stack.upgrade_core(BETWEEN)
            _check_same(cluster, before)
        with upgraded.phase(f"core {BETWEEN}, v0.1: workers 1 -> 2"):
            scale_topology(cluster, 2)
            _wait_well(cluster, 3)
        before = identity([cluster])
        with upgraded.phase(f"core {BETWEEN}, v0.1: managers start again, and read the newer core"):
            crash(upgraded.site, within=0)
            _check_same(cluster, before)
        with upgraded.phase(f"clusterctl upgrade apply: core {NEWEST} alone"):
            stack.upgrade_core(NEWEST)
            _check_same(cluster, before)
        with upgraded.phase("clusterctl upgrade apply: v0.2.0 alone; restart core"):
            stack.upgrade(release)
            stack.restart_core()
            _check_same(cluster, before)
            wait_migrated(cluster.client, release)
        check_labels(cluster.client, release)
        with upgraded.phase(f"core {NEWEST}, v0.2: workers 2 -> 1"):
            scale_topology(cluster, 1)
            _wait_well(cluster, 2)
        with upgraded.phase(f"core {NEWEST}, v0.2: delete"):
            delete_and_check(cluster)
    for manager in upgraded.site.managers.values():
        assert manager.complaints() == []


def _wait_well(cluster: Scenario, machines: int) -> None:
    cluster.wait_running(machines, timeout=WHOLE_SECONDS)
    wait_available(cluster)
    wait_reconciled(cluster)


def _check_same(cluster: Scenario, before: Identity) -> None:
    """The cluster is well, nothing was made or taken away, and nothing is about to be."""

    def same() -> None:
        assert identity([cluster]) == before

    _wait_well(cluster, len(before.machines))
    steadily(same, seconds=_QUIET_SECONDS)
    _wait_well(cluster, len(before.machines))
