"""Unit tests of AcmeMachineReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.infrastructure import Deleted, InfraMachineState, Terminated, Waiting
from capsmith_runtime.testing import infrastructure as testing

from cluster_api_provider_acme._generated.api.acme_machine import AcmeMachineSpec
from cluster_api_provider_acme.cloud import SimulatedCloud
from cluster_api_provider_acme.controllers.acme_machine import AcmeMachineReconciler

SPEC = testing.spec_from(AcmeMachineSpec, {"size": "example", "image": "ubuntu-24.04"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_machine_is_created_once(cloud: SimulatedCloud, tmp_path: Path) -> None:
    machine = testing.infra_machine(SPEC)

    first = AcmeMachineReconciler(cloud).reconcile_normal(machine)
    again = AcmeMachineReconciler(cloud).reconcile_normal(machine)

    assert isinstance(first, InfraMachineState)
    assert first == again
    journal = (tmp_path / "journal.log").read_text()
    assert journal == f"create server {machine.external_id}\n"


def test_machine_whose_server_disappeared_is_not_created_again(
    cloud: SimulatedCloud, tmp_path: Path
) -> None:
    reconciler = AcmeMachineReconciler(cloud)
    machine = testing.infra_machine(SPEC)
    state = reconciler.reconcile_normal(machine)
    assert isinstance(state, InfraMachineState)
    cloud.delete_server(machine.external_id)

    known = testing.infra_machine(SPEC, provider_id=state.provider_id)

    assert isinstance(reconciler.reconcile_normal(known), Terminated)
    assert cloud.find_server(machine.external_id) is None


def test_machine_whose_server_is_not_listed_yet_waits(
    cloud: SimulatedCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "find_server", lambda external_id: None)
    reconciler = AcmeMachineReconciler(cloud)

    first = reconciler.reconcile_normal(testing.infra_machine(SPEC))
    assert isinstance(first, Waiting)
    assert first.provider_id is not None
    machine = testing.infra_machine(SPEC, provider_id=first.provider_id, is_provisioned=False)

    assert reconciler.reconcile_normal(machine) == first


def test_machine_is_deleted(cloud: SimulatedCloud) -> None:
    reconciler = AcmeMachineReconciler(cloud)
    machine = testing.infra_machine(SPEC)
    reconciler.reconcile_normal(machine)

    results = [reconciler.reconcile_delete(testing.infra_machine_deletion(SPEC)) for _ in range(2)]

    assert results == [Deleted(), Deleted()]
    assert cloud.find_server(machine.external_id) is None
