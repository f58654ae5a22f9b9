"""Results and scopes of machine pool reconcilers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.contract.model import Address, Condition
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
    MachinePoolMachinesReconciler,
)
from capsmith_runtime.testing.infrastructure import pool_builders as testing

ONE = Instance(provider_id="p://1")
BOOTED = Condition(type="Booted", status=True, reason="R")
MANY = [Condition(type=f"C{number}", status=True, reason="R") for number in range(31)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"provider_id": ""}, "provider_id must have 1 to 512"),
        ({"provider_id": "x" * 513}, "provider_id must have 1 to 512"),
        ({"provider_id": "p", "name": "x" * 257}, "at most 256"),
        ({"provider_id": "p", "version": "x" * 257}, "at most 256"),
        ({"provider_id": "p", "addresses": [Address("Hostname", "h")] * 257}, "at most 256"),
        ({"provider_id": "p", "conditions": [BOOTED] * 2}, "each type once"),
        ({"provider_id": "p", "conditions": MANY}, "at most 30"),
    ],
)
def test_an_instance_fits_into_the_schema(wrong: dict[str, Any], message: str) -> None:
    """Proves: MP-06."""
    with pytest.raises(ValueError, match=message):
        Instance(**wrong)


@pytest.mark.parametrize(
    "largest",
    [
        {"provider_id": "x" * 512},
        {"provider_id": "p", "name": "x" * 256, "version": "x" * 256},
        {"provider_id": "p", "addresses": [Address("Hostname", "h")] * 256},
        {"provider_id": "p", "conditions": MANY[:30]},
    ],
)
def test_an_instance_may_be_as_large_as_the_schema_allows(largest: dict[str, Any]) -> None:
    """Proves: MP-06."""
    instance = Instance(**largest)

    assert {name: getattr(instance, name) for name in largest} == largest


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"instances": [ONE, Instance(provider_id="p://1")]}, "each provider_id once"),
        ({"instances": [ONE] * 2}, "each provider_id once"),
        ({"provider_id": ""}, "1 to 512"),
        ({"replicas": -1}, "negative"),
        ({"reason": "two words"}, "CamelCase"),
        ({"conditions": [Condition(type="Ready", status=True, reason="R")]}, "written for you"),
    ],
)
def test_a_state_fits_into_the_schema(wrong: dict[str, Any], message: str) -> None:
    """Proves: MP-03, MP-05."""
    with pytest.raises(ValueError, match=message):
        InfraMachinePoolState(**wrong)


def test_a_pool_is_as_core_describes_it() -> None:
    """Proves: MP-17, MP-19."""
    pool: InfraMachinePoolScope[Any] = testing.infra_machine_pool(
        {}, replicas=4, bootstrap=b"today"
    )
    assert (pool.replicas, pool.version, pool.failure_domains) == (4, "v1.34.0", ())
    assert not pool.replicas_managed_elsewhere
    assert pool.bootstrap_data().text == "today"
    assert asyncio.run(pool.bootstrap_data_async()).value == b"today"


def test_the_number_is_unmanaged_unless_the_author_sets_it() -> None:
    """Proves: MP-17."""
    pool: InfraMachinePoolScope[Any] = testing.infra_machine_pool(
        {}, replicas_managed_elsewhere=True
    )
    reconciler: MachinePoolMachinesReconciler[Any] = MachinePoolMachinesReconciler()
    assert reconciler.replicas(pool) is None
