"""Unit tests of NimbusRemediationReconciler; they need no API server."""

from __future__ import annotations

from pathlib import Path

import pytest
from capsmith_runtime.remediation import Deleted, RemediationFailed, RemediationState
from capsmith_runtime.testing import remediation as testing

from capn._generated.api.nimbus_remediation import NimbusRemediationSpec
from capn.cloud import SimulatedCloud
from capn.controllers.nimbus_remediation import NimbusRemediationReconciler

SPEC = testing.spec_from(NimbusRemediationSpec, {})


@pytest.fixture
def cloud(tmp_path: Path) -> SimulatedCloud:
    return SimulatedCloud(tmp_path)


def test_server_is_restarted_once(cloud: SimulatedCloud) -> None:
    reconciler = NimbusRemediationReconciler(cloud)
    remediation = testing.remediation(SPEC)
    cloud.create_server(remediation.infra_machine.external_id, "machine", "cluster", None)

    results = [reconciler.reconcile_normal(remediation) for _ in range(2)]

    assert results == [RemediationState(), RemediationState()]
    assert len(list((cloud.folder / "restarts").iterdir())) == 1


def test_machine_without_server_is_left_to_its_owner(cloud: SimulatedCloud) -> None:
    result = NimbusRemediationReconciler(cloud).reconcile_normal(testing.remediation(SPEC))

    assert isinstance(result, RemediationFailed)


def test_nothing_is_left_of_a_remediation(cloud: SimulatedCloud) -> None:
    reconciler = NimbusRemediationReconciler(cloud)

    assert reconciler.reconcile_delete(testing.remediation_deletion(SPEC)) == Deleted()
