"""A manager as a process: its API server is in memory, and its author's code takes long or forever.

It prints each holder that it writes into the lease, and what the author's code does.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from capsmith_runtime import manager
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.infrastructure import InfraMachineState
from capsmith_runtime.kube import executor
from capsmith_runtime.kube.client import JSON, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.request_limit import RequestLimit
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.infrastructure.fake_core import FakeCore
from tests.runtime.infrastructure.scripted_provider import (
    COMPONENT,
    PROVIDER,
    PROVISIONED,
    ScriptedMachineReconciler,
)

_began, _never = threading.Event(), threading.Event()
_pool = ThreadPoolExecutor(1)


def create() -> InfraMachineState:
    """Create a server, which does not end."""
    begin()
    _never.wait()
    return PROVISIONED


def begin() -> None:
    say("create begins")
    _began.set()


def in_handler_thread(self: object, machine: object) -> InfraMachineState:
    return create()


async def in_default_executor(self: object, machine: object) -> InfraMachineState:
    return await asyncio.to_thread(create)


async def in_own_pool(self: object, machine: object) -> InfraMachineState:
    return await asyncio.get_running_loop().run_in_executor(_pool, create)


async def in_event_loop(self: object, machine: object) -> InfraMachineState:
    return create()


async def in_cleanup(self: object, machine: object) -> InfraMachineState:
    """Continue after a cancellation."""
    begin()
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            say("cancelled")


def in_request(self: object, machine: object) -> InfraMachineState:
    """Create a server with a request that takes a while."""
    begin()
    time.sleep(0.5)
    say("create ends")
    return PROVISIONED


AUTHORS: dict[str, Callable[..., Any]] = {
    each.__name__.removeprefix("in_"): each
    for each in (
        in_handler_thread,
        in_default_executor,
        in_own_pool,
        in_event_loop,
        in_cleanup,
        in_request,
    )
}


class Api(FakeApi):
    """The API server in memory; optionally no lease can be renewed while the author's code runs."""

    is_trusted = True
    refuses_renewals = False

    def __init__(self, metrics: Metrics, *, field_manager: str, limit: RequestLimit) -> None:
        super().__init__("v1beta2", PROVIDER.manifests)
        self.tasks: list[asyncio.Task[None]] = []

    async def served_versions(self, group: str) -> tuple[str, ...]:
        """Return what the fake serves; the manager's first request adds the machine."""
        if not self.tasks:
            self.tasks = [asyncio.create_task(self._add_machine())]
        return await super().served_versions(group)

    async def update(self, resource: ResourceType, obj: JSON) -> JSON:
        if resource.kind == "Lease":
            holder = obj["spec"]["holderIdentity"]
            if holder != self.all("Lease")[0]["spec"]["holderIdentity"]:
                say(f"holder {holder!r}")
            elif self.refuses_renewals and _began.is_set():
                raise create_api_error(0, "Test", "renewals fail")
        return await super().update(resource, obj)

    async def _add_machine(self) -> None:
        group: Any = COMPONENT.groups[0]
        core = FakeCore(self, group.clusters[0], group.machines[0], manifests=PROVIDER.manifests)
        core.add_credentials(group.identities, COMPONENT.namespace)
        cluster = core.add_cluster()
        while not core.provisioned(core.infra_cluster(cluster)):
            await asyncio.sleep(0.01)
        core.infrastructure_is_ready(cluster)
        core.add_machine(cluster)


def say(what: str) -> None:
    print(what, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--author", choices=sorted(AUTHORS), required=True)
    parser.add_argument("--refuse-renewals", action="store_true")
    parser.add_argument("--exhausted-seconds", type=float, default=180.0)
    found, arguments = parser.parse_known_args()
    patch = pytest.MonkeyPatch()
    patch.setattr(Api, "refuses_renewals", found.refuse_renewals)
    patch.setattr(executor, "EXHAUSTED_SECONDS", found.exhausted_seconds)
    patch.setattr(ScriptedMachineReconciler, "reconcile_normal", AUTHORS[found.author])
    patch.setattr(manager, "LightkubeClient", Api)
    return manager.main(["infrastructure"], lambda _: COMPONENT, arguments)


if __name__ == "__main__":
    sys.exit(main())
