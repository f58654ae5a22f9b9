"""The simpler way to another contract: one API version changes its shape in place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.lab.simulated.loop import Loop
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.harness.report import Report
from tests.e2e.lineage import HOMELAB, Lineage
from tests.e2e.releases import BETWEEN, NEWEST, OLDEST
from tests.e2e.scenario import Scenario, one_scenario, wait_nothing_left
from tests.e2e.stack import Combination, Site, Stack
from tests.e2e.upgrade import identity
from tests.e2e.upgrade_checks import check_labels, stored_objects

NAME = "contract-in-place"
_KEEP = ("--contract", "v1beta2", "--keep-api-version")
_QUIET_SECONDS = 3.0


@pytest.fixture(scope="module")
def lineage(base: Base) -> Lineage:
    return Lineage(base.folder / NAME / "author", HOMELAB)


@pytest.fixture(scope="module")
def reshaped(
    base: Base, workload: ApiServer, report: Report, lineage: Lineage
) -> Iterator[tuple[Stack, Site]]:
    """Return a stack with v0.1 under the oldest core, and helpers for the other providers."""
    provider = lineage.begin("v0.1.0")
    stack = Stack(base, workload, Combination(OLDEST, "v1beta1", "", NAME), provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


def test_contract_in_place(reshaped: tuple[Stack, Site], lineage: Lineage) -> None:
    """Proves: GEN-06, IC-05, IM-03, SM-09."""
    stack, _ = reshaped
    with one_scenario(*reshaped, "test_contract_in_place") as scenario:
        scenario.create(scenario.render(1, 2))
        scenario.wait_running(3)
        before, phases = identity([scenario]), set[str]()
        release = lineage.go_on("v0.2.0", *_KEEP)
        stack.offer(release, BETWEEN, NEWEST)
        # The version of before, which the newer core serves as well.
        watch = Loop(NAME, stack.folder / "watch.log", [lambda: _look(scenario, phases)])
        watch.start()
        try:
            with stack.report.phase(NAME, f"clusterctl upgrade apply: v0.2.0, core {BETWEEN}"):
                stack.upgrade(release, BETWEEN)
                eventually(lambda: _all_reshaped(scenario), what="the new shape everywhere")
            with stack.report.phase(NAME, f"clusterctl upgrade apply: core {NEWEST} alone"):
                stack.upgrade_core(NEWEST)
            check_labels(scenario.client, release)
            steadily(lambda: _check_same(scenario, before), seconds=_QUIET_SECONDS)
        finally:
            watch.stop()
        assert phases == {"Running"}
        with stack.report.phase(NAME, "v0.2: workers 2 -> 3, delete"):
            scenario.scale_workers(3)
            scenario.wait_running(4)
            scenario.delete()
            wait_nothing_left(scenario)


def _look(scenario: Scenario, phases: set[str]) -> None:
    version = "cluster.x-k8s.io/v1beta1"
    for machine in scenario.client.list(version, "Machine", scenario.namespace):
        phases.add(machine["status"]["phase"])


def _check_same(scenario: Scenario, before: object) -> None:
    assert identity([scenario]) == before


def _all_reshaped(scenario: Scenario) -> bool:
    """Nothing converts: the status is empty until the manager has written it again."""
    found = stored_objects(scenario.client, scenario.stack.provider)
    with_flag = [each for each in found if not each["kind"].endswith(("Template", "Identity"))]
    assert len(with_flag) == 4
    left = [each["metadata"]["name"] for each in with_flag if not _is_provisioned(each)]
    if left:
        raise NotYet(f"still to be written: {left}")
    return True


def _is_provisioned(obj: JSON) -> bool:
    status = obj.get("status", {})
    assert "ready" not in status
    return bool(status.get("initialization", {}).get("provisioned"))
