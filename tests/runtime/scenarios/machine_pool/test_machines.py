"""The life of a pool with Machines: how its machines come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from capsmith_runtime.infrastructure.api import (
    InfraMachineDeleteScope,
    InfraMachineReconciler,
    InfraMachineScope,
    InfraMachineState,
)
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.conformance.machine_pool.base import (
    PoolMachinesCase,
    PoolMachinesConformance,
)
from capsmith_runtime.testing.machine_pool.environment import (
    VERSION,
    PoolMachinesEnvironment,
)
from capsmith_runtime.testing.provider import InfrastructureDouble, replace_group
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("pools")


class ScriptedMachines(InfraMachineReconciler[Any]):
    """Create nothing, and record the arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str | None, str | None]] = []

    async def reconcile_normal(self, machine: InfraMachineScope[Any]) -> InfraMachineState:
        text = (await machine.bootstrap_data_async()).text
        self.calls.append((text, machine.machine.version, machine.failure_domain))
        return InfraMachineState(provider_id=f"scripted://{machine.external_id}")

    async def reconcile_delete(self, machine: InfraMachineDeleteScope[Any]) -> Any:
        raise AssertionError("no scenario deletes")


@run_with("pools")
class TestPoolMachineReconciliation(PoolMachinesConformance):
    """The arguments of a reconciler for a machine of a pool; a scripted reconciler records them."""

    @pytest.fixture
    def author(self) -> ScriptedMachines:
        """The reconciler of machines."""
        return ScriptedMachines()

    @pytest.fixture
    def env(
        self,
        case: PoolMachinesCase,
        infrastructure: InfrastructureDouble,
        author: ScriptedMachines,
    ) -> PoolMachinesEnvironment:
        """A management cluster with one running cluster, and the scripted reconciler."""
        scripted = [
            replace(each, reconciler=cast(Any, lambda: author))
            for each in case.controllers.machines
        ]
        controllers = replace(case.controllers, machines=tuple(scripted))
        return PoolMachinesEnvironment(
            case.provider,
            replace_group(case.component, case.controllers, controllers),
            case.core_version,
            infrastructure=infrastructure,
            controllers=controllers,
            kind=case.kind,
        )

    @scenario
    async def test_a_machine_gets_the_settings_of_its_pool(
        self, env: PoolMachinesEnvironment, author: ScriptedMachines
    ) -> None:
        """Proves: IM-06, IM-21."""
        env.add_pool(1, failureDomains=["zone-7"])
        await env.eventually("it was asked", lambda: len(env.ids()) == 1)
        env.write_bootstrap("second")
        env.scale(2)
        await env.eventually("it was asked again", lambda: len(env.ids()) == 2)
        assert author.calls[0] == ("first", VERSION, "zone-7")
        assert author.calls[-1][0] == "second"
