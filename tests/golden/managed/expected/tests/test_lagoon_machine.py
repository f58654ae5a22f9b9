"""Your tests of LagoonMachine: no API server is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_api_provider_lagoon import Gone, InfraMachineState
from cluster_api_provider_lagoon._generated import testing
from cluster_api_provider_lagoon._generated.api.lagoon_machine import LagoonMachineSpec
from cluster_api_provider_lagoon.cloud import SimulatedCloud
from cluster_api_provider_lagoon.controllers.lagoon_machine import LagoonMachineReconciler

SPEC = testing.spec_from(LagoonMachineSpec, {"size": "example"})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_a_machine_is_created_once(cloud: SimulatedCloud, tmp_path: Path) -> None:
    machine = testing.infra_machine(SPEC)

    first = LagoonMachineReconciler(cloud).reconcile_normal(machine)
    again = LagoonMachineReconciler(cloud).reconcile_normal(machine)

    assert isinstance(first, InfraMachineState)
    assert first == again
    journal = (tmp_path / "journal.log").read_text()
    assert journal == f"create server {machine.external_id}\n"


def test_a_machine_goes_away(cloud: SimulatedCloud) -> None:
    reconciler = LagoonMachineReconciler(cloud)
    machine = testing.infra_machine(SPEC)
    reconciler.reconcile_normal(machine)

    answers = [reconciler.reconcile_delete(testing.infra_machine_deletion(SPEC)) for _ in range(2)]

    assert answers == [Gone(), Gone()]
    assert cloud.find_server(machine.external_id) is None
