"""Unit tests of NimbusMachinePoolReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.infrastructure import Deleted, InfraMachinePoolState, Waiting
from capsmith_runtime.testing import infrastructure as testing

from capn._generated.api.nimbus_machine_pool import NimbusMachinePoolSpec
from capn.cloud import Server, SimulatedCloud
from capn.controllers.nimbus_machine_pool import NimbusMachinePoolReconciler
from capn.server_groups import ServerGroups

SPEC = testing.spec_from(
    NimbusMachinePoolSpec,
    {
        "flavor": "example",
        "imageID": "example",
        "identityRef": {"kind": "NimbusTenantIdentity", "name": "nimbus"},
    },
)


@pytest.fixture
def groups(tmp_path: Path) -> ServerGroups:
    return ServerGroups(SimulatedCloud(tmp_path))


def ids(state: InfraMachinePoolState | Waiting) -> list[str]:
    assert isinstance(state, InfraMachinePoolState)
    return [instance.provider_id for instance in state.instances]


def test_pool_is_scaled_to_the_desired_size(groups: ServerGroups, tmp_path: Path) -> None:
    """No server is created twice, and servers that stay keep their ids."""
    reconciler = NimbusMachinePoolReconciler()
    sizes = (0, 3, 3, 1, 2)
    states = [
        ids(
            reconciler.reconcile_normal(
                testing.infra_machine_pool(SPEC, replicas=size, session=groups)
            )
        )
        for size in sizes
    ]

    assert [len(state) for state in states] == list(sizes)
    assert states[1] == states[2]
    assert states[3] == states[2][:1]
    assert states[4][0] == states[3][0]
    lines = (tmp_path / "journal.log").read_text().splitlines()
    assert len(lines) == len(set(lines))


def test_pool_keeps_the_size_that_its_own_autoscaler_sets(
    groups: ServerGroups,
) -> None:
    reconciler = NimbusMachinePoolReconciler()
    reconciler.reconcile_normal(testing.infra_machine_pool(SPEC, replicas=2, session=groups))

    scope = testing.infra_machine_pool(
        SPEC, replicas=9, replicas_managed_elsewhere=True, session=groups
    )
    state = reconciler.reconcile_normal(scope)

    assert len(ids(state)) == 2
    assert isinstance(state, InfraMachinePoolState)
    assert state.replicas == 2


def test_pool_does_not_overrule_its_own_autoscaler(
    groups: ServerGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The autoscaler acts while the pool is reconciled."""
    reconciler = NimbusMachinePoolReconciler()
    reconciler.reconcile_normal(testing.infra_machine_pool(SPEC, replicas=2, session=groups))

    def resize(groups: ServerGroups, external_id: str) -> list[Server]:
        monkeypatch.undo()
        groups.scale(external_id, "pool", "cluster", 3, None, None)
        return groups.servers(external_id)

    monkeypatch.setattr(ServerGroups, "servers", resize)
    scope = testing.infra_machine_pool(
        SPEC, replicas=2, replicas_managed_elsewhere=True, session=groups
    )
    state = reconciler.reconcile_normal(scope)

    assert len(ids(state)) == 3
    group = groups.find(scope.external_id)
    assert group is not None
    assert group.size == 3


def test_new_version_replaces_servers_one_at_a_time(groups: ServerGroups) -> None:
    """No server is reported with another version than the one that it was created with."""
    reconciler = NimbusMachinePoolReconciler()
    before = reconciler.reconcile_normal(
        testing.infra_machine_pool(SPEC, replicas=2, version="v1.34.0", session=groups)
    )
    found = []
    for _ in range(3):
        pool = testing.infra_machine_pool(SPEC, replicas=2, version="v1.35.0", session=groups)
        state = reconciler.reconcile_normal(pool)
        assert isinstance(state, InfraMachinePoolState)
        found.append([instance.version for instance in state.instances])

    assert found == [["v1.35.0", "v1.34.0"], ["v1.35.0", "v1.35.0"], ["v1.35.0", "v1.35.0"]]
    assert not set(ids(before)) & set(ids(state))
    assert len(groups.servers(pool.external_id)) == 2


def test_new_servers_run_the_current_bootstrap_data(
    groups: ServerGroups, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPSMITH_SIMULATED_USER_DATA", "true")
    reconciler = NimbusMachinePoolReconciler()
    for replicas, data in ((1, b"first"), (2, b"second")):
        pool = testing.infra_machine_pool(SPEC, replicas=replicas, bootstrap=data, session=groups)
        reconciler.reconcile_normal(pool)

    servers = groups.servers(pool.external_id)
    assert [server.user_data for server in servers] == ["first", "second"]


def test_pool_is_deleted(groups: ServerGroups) -> None:
    reconciler = NimbusMachinePoolReconciler()
    pool = testing.infra_machine_pool(SPEC, replicas=3, session=groups)
    reconciler.reconcile_normal(pool)

    results = [
        reconciler.reconcile_delete(testing.infra_machine_pool_deletion(SPEC, session=groups))
        for _ in range(2)
    ]

    assert results == [Deleted(), Deleted()]
    assert groups.servers(pool.external_id) == []
