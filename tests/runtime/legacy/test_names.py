"""Names of capsmith 0.1 are the same objects as those that replaced them."""

from __future__ import annotations

from importlib import import_module

import pytest

from capsmith_runtime.infrastructure import InfraMachineReconciler
from capsmith_runtime.legacy import infrastructure

RENAMED = {
    "Addon": "AddonScope",
    "AddonDeletion": "AddonDeleteScope",
    "BootstrapConfig": "BootstrapConfigScope",
    "ControlPlane": "ControlPlaneScope",
    "Gone": "Deleted",
    "InfraCluster": "InfraClusterScope",
    "InfraClusterDeletion": "InfraClusterDeleteScope",
    "InfraMachine": "InfraMachineScope",
    "InfraMachineDeletion": "InfraMachineDeleteScope",
    "InfraMachinePool": "InfraMachinePoolScope",
    "InfraMachinePoolDeletion": "InfraMachinePoolDeleteScope",
    "ManagedControlPlane": "ManagedControlPlaneScope",
    "ManagedControlPlaneDeletion": "ManagedControlPlaneDeleteScope",
}
CHANGED = {"InfraMachineReconciler"}
"""Classes of their own, which call the author as release 0.1 did."""


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("addon", "addon"),
        ("bootstrap", "bootstrap"),
        ("common", "infrastructure"),
        ("controlplane", "controlplane"),
        ("infrastructure", "infrastructure"),
        ("ipam", "ipam"),
    ],
)
def test_each_former_name_is_an_object_of_today(former: str, current: str) -> None:
    old = import_module(f"capsmith_runtime.legacy.{former}")
    new = import_module(f"capsmith_runtime.{current}")

    names = [name for name in old.__all__ if name not in CHANGED]
    assert names
    assert {name: getattr(old, name) for name in names} == {
        name: getattr(new, RENAMED.get(name, name)) for name in names
    }


def test_reconcilers_of_machines_get_the_spec_for_the_capacity() -> None:
    assert issubclass(infrastructure.InfraMachineReconciler, InfraMachineReconciler)
    assert infrastructure.InfraMachineReconciler._capacity_gets_spec
    assert not InfraMachineReconciler._capacity_gets_spec
