"""Put into a generated repository: how objects end without their owners, and the manager itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from cluster_api_provider_acme import Gone, InfraMachineState, Waiting
from cluster_api_provider_acme._generated import manager

from .conftest import Play
from .fake_core import provisioned
from .provider import REGISTRY, Manager, Metrics, Options
from .stage import Stage
from .test_scripted_author import UP, delete, machine_in, normal

__all__ = ["delete", "normal"]


def slow(seconds: float) -> Callable[[object], InfraMachineState]:
    def answer(machine: object) -> InfraMachineState:
        time.sleep(seconds)
        return UP

    return answer


def test_a_new_version_of_core_lets_what_runs_come_to_its_end(
    play: Play, normal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "CORE_CHECK_SECONDS", 0.1)
    script = normal(slow(1.0))

    async def story(stage: Stage) -> None:
        key = await machine_in(stage)
        await stage.eventually("asked", lambda: script.calls)
        stage.api.core_version = "v1beta1"
        running, stage._running = stage._running, None
        assert running is not None
        with pytest.raises(ExceptionGroup) as ended:
            await running
        assert ended.group_contains(manager.CoreVersionChangedError)
        assert stage.core.infra_machine(key)["spec"]["providerID"] == "acme://1"

    play(story)


@pytest.mark.parametrize(("seconds", "holder"), [(0.0, False), (5.0, True)])
def test_nobody_else_leads_while_the_authors_code_runs(
    play: Play, normal: Any, monkeypatch: pytest.MonkeyPatch, seconds: float, holder: bool
) -> None:
    monkeypatch.setattr(manager, "STOP_SECONDS", 0.2 if holder else 60.0)
    script = normal(slow(seconds))

    async def story(stage: Stage) -> None:
        await stage.stop()
        options = Options(
            own_namespace=REGISTRY.namespace,
            lease_namespace=REGISTRY.namespace,
            diagnostics_address="127.0.0.1:0",
            leader_elect=True,
        )
        stop = asyncio.Event()
        leading = Manager(REGISTRY, options, stage.api, Metrics())
        running = asyncio.create_task(leading.run(stop))
        await machine_in(stage)
        await stage.eventually("asked", lambda: script.calls)
        stop.set()
        await running
        (lease,) = stage.api.all("Lease")
        assert bool(lease["spec"]["holderIdentity"]) == holder

    play(story)


def test_a_deletion_after_that_of_the_cluster_has_credentials(play: Play, delete: Any) -> None:
    """Proves: SM-08."""
    script = delete(lambda machine: Gone() if machine.credentials else Waiting("None"))

    async def story(stage: Stage) -> None:
        cluster = await stage.running_cluster()
        key = await stage.running_machine(cluster)
        stage.api.remove("Machine", key)
        stage.api.remove("Cluster", cluster)
        stage.api.remove(stage.machine_kind.resource.kind, key)
        await stage.eventually("gone", lambda: stage.is_gone(stage.machine_kind, key))
        given: Any = script.calls[-1]
        assert (given.cluster, given.machine) == (None, None)
        assert given.infra_cluster.name == cluster.name

    play(story)


def test_a_cluster_of_another_provider_names_no_identity(play: Play, normal: Any) -> None:
    """Proves: IC-01."""
    script = normal(UP)

    async def story(stage: Stage) -> None:
        cluster = stage.core.add_cluster(infrastructureRef=None)
        stage.core.infrastructure_is_ready(cluster)
        key = stage.core.add_machine(cluster)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_machine(key)))
        assert script.calls[0].infra_cluster is None
        assert script.calls[0].credentials == {}

    play(story)
