"""Fields and conditions that the author of the example pools reports of each machine."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import pytest

from capsmith_runtime.contract.model import Condition
from capsmith_runtime.infrastructure.machine_pool_api import (
    InfraMachinePoolDeleteScope,
    InfraMachinePoolReconciler,
    InfraMachinePoolScope,
    InfraMachinePoolState,
    Instance,
)
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import MachinePoolConformance, PoolCase
from capsmith_runtime.testing.machine_pool.environment import MachinePoolEnvironment
from capsmith_runtime.testing.provider import InfrastructureDouble
from tests.runtime.scenarios.machine_pool.environment import build_environment
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")
_MODULE = "cluster_api_provider_tidal._generated.api.tidal_machine_pool"
INSTANCE_STATUS = importlib.import_module(_MODULE).TidalMachinePoolInstanceStatus
"""The class that the example's ``instanceStatus`` is generated as."""


@dataclass(frozen=True)
class Server:
    """A server of a scaling group, as its infrastructure describes it."""

    zone: str
    spot: bool | None = None
    state: str = "Running"


class ScalingGroups(InfraMachinePoolReconciler[Any]):
    """Report each server of the group with its zone, and whether it is a spot instance."""

    def __init__(self) -> None:
        self.servers: dict[str, Server] = {}

    async def reconcile_normal(self, pool: InfraMachinePoolScope[Any]) -> InfraMachinePoolState:
        instances = [_describe(name, server) for name, server in self.servers.items()]
        return InfraMachinePoolState(instances=instances)

    async def reconcile_delete(self, pool: InfraMachinePoolDeleteScope[Any]) -> Any:
        raise AssertionError("no scenario deletes")


def _describe(name: str, server: Server) -> Instance:
    running = server.state == "Running"
    return Instance(
        provider_id=f"tidal://{name}",
        name=name,
        ready=running,
        conditions=[Condition(type="Running", status=running, reason=server.state)],
        status=INSTANCE_STATUS(zone=server.zone, spot=server.spot),
    )


@run_with("pools")
class TestInstanceStatus(MachinePoolConformance):
    """Fields and conditions of each machine; requires ``instanceStatus`` in provider.yaml."""

    @pytest.fixture
    def author(self) -> ScalingGroups:
        """Return the reconciler, whose servers a test sets."""
        return ScalingGroups()

    @pytest.fixture
    def env(
        self, case: PoolCase, infrastructure: InfrastructureDouble, author: ScalingGroups
    ) -> MachinePoolEnvironment:
        """Return a management cluster with a running cluster and the author's reconciler."""
        return build_environment(case, infrastructure, author)

    @scenario
    async def test_each_machine_has_its_values(
        self, env: MachinePoolEnvironment, author: ScalingGroups
    ) -> None:
        """Write the author's values beside those of the contract, and remove what no longer holds.

        Proves: MP-06.
        """
        author.servers = {"a": Server("north-1", spot=True), "b": Server("north-2", spot=False)}
        env.add_pool(2)
        await env.eventually("both are reported", lambda: len(env.instances()) == 2)
        assert _values(env) == {"tidal://a": ("north-1", True), "tidal://b": ("north-2", False)}
        kept = env.instances()["tidal://b"]
        assert _running(kept) == ("True", "Running")

        author.servers["a"] = Server("north-1", spot=True, state="Reclaimed")
        env.write_bootstrap("a change that causes a reconcile")
        expected = ("False", "Reclaimed")
        await env.eventually(
            "it says so", lambda: _running(env.instances()["tidal://a"]) == expected
        )
        assert env.instances()["tidal://a"]["ready"] is False
        assert env.instances()["tidal://b"] == kept

        author.servers = {"b": author.servers["b"], "c": Server("north-3")}
        env.write_bootstrap("another one")
        await env.eventually("the new one is reported", lambda: "tidal://c" in env.instances())
        assert _values(env) == {"tidal://b": ("north-2", False), "tidal://c": ("north-3", None)}
        assert env.instances()["tidal://b"] == kept


def _values(env: MachinePoolEnvironment) -> dict[str, tuple[Any, Any]]:
    found = env.instances().items()
    return {name: (entry.get("zone"), entry.get("spot")) for name, entry in found}


def _running(entry: JSON) -> tuple[str, str]:
    (found,) = (each for each in entry["conditions"] if each["type"] == "Running")
    return found["status"], found["reason"]
