"""Your tests of HarbourMachinePool: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_harbour import Gone, InfraMachinePoolState, Waiting
from cluster_api_provider_harbour._generated import machine_pool_testing as testing
from cluster_api_provider_harbour._generated.api.harbour_machine_pool import HarbourMachinePoolSpec
from cluster_api_provider_harbour._generated.testing import spec_from
from cluster_api_provider_harbour.cloud import SimulatedCloud
from cluster_api_provider_harbour.controllers.harbour_machine_pool import (
    HarbourMachinePoolReconciler,
)
from cluster_api_provider_harbour.server_groups import ServerGroups

SPEC = spec_from(HarbourMachinePoolSpec, {"size": "example"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def ids(state: InfraMachinePoolState | Waiting) -> list[str]:
    assert isinstance(state, InfraMachinePoolState)
    return [instance.provider_id for instance in state.instances]


def test_a_pool_has_the_size_that_is_wanted(cloud: SimulatedCloud, tmp_path: Path) -> None:
    """Nothing is made twice, and what stays keeps its id."""
    reconciler = HarbourMachinePoolReconciler(cloud)
    sizes = (0, 3, 3, 1, 2)
    states = [
        ids(reconciler.reconcile_normal(testing.infra_machine_pool(SPEC, replicas=size)))
        for size in sizes
    ]

    assert [len(state) for state in states] == list(sizes)
    assert states[1] == states[2]
    assert states[3] == states[2][:1]
    assert states[4][0] == states[3][0]
    lines = (tmp_path / "journal.log").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_the_size_is_the_infrastructure_s_while_that_scales_by_itself(
    cloud: SimulatedCloud,
) -> None:
    reconciler = HarbourMachinePoolReconciler(cloud)
    reconciler.reconcile_normal(testing.infra_machine_pool(SPEC, replicas=2))

    elsewhere = testing.infra_machine_pool(SPEC, replicas=9, replicas_managed_elsewhere=True)
    state = reconciler.reconcile_normal(elsewhere)

    assert len(ids(state)) == 2
    assert isinstance(state, InfraMachinePoolState)
    assert state.replicas == 2


def test_later_servers_run_the_bootstrap_data_of_their_day(
    cloud: SimulatedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPSMITH_SIMULATED_USER_DATA", "true")
    reconciler = HarbourMachinePoolReconciler(cloud)
    for replicas, data in ((1, b"first"), (2, b"second")):
        pool = testing.infra_machine_pool(SPEC, replicas=replicas, bootstrap=data)
        reconciler.reconcile_normal(pool)

    servers = ServerGroups(cloud).servers(pool.external_id)
    assert [server.user_data for server in servers] == ["first", "second"]


def test_a_pool_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = HarbourMachinePoolReconciler(cloud)
    pool = testing.infra_machine_pool(SPEC, replicas=3)
    reconciler.reconcile_normal(pool)

    answers = [
        reconciler.reconcile_delete(testing.infra_machine_pool_deletion(SPEC)) for _ in range(2)
    ]

    assert answers == [Gone(), Gone()]
    assert ServerGroups(cloud).servers(pool.external_id) == []
