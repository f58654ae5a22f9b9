"""The manager runs caches, queues, controllers and leader election of one process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from capsmith_runtime.builder import ManagerBuilder
from capsmith_runtime.component import Component
from capsmith_runtime.contract.constants import CORE_GROUP
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.core_versions import CoreNotServedError, choose
from capsmith_runtime.kube import log
from capsmith_runtime.kube.client import ApiError, KubeClient, NamespacedName
from capsmith_runtime.kube.health import DiagnosticsServer
from capsmith_runtime.kube.leaderelection import LeaderElector
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.options import ExtraFlags, Options, parse
from capsmith_runtime.reconcile.caches import WatchScope

_log = log.get_logger("manager")

CORE_RETRY_SECONDS: Final = 5.0
CORE_CHECK_SECONDS: Final = 300.0
STOP_SECONDS: Final = 8.0
"""Shorter than the ten seconds that the Deployment allows."""


class CoreVersionChangedError(Exception):
    """Core was upgraded: the manager must restart to read the new version."""


def main(
    components: Sequence[str],
    load: Callable[[str], Component],
    arguments: Sequence[str] | None = None,
    extras: Sequence[ExtraFlags] = (),
) -> int:
    """Run one of the components until a signal; return the exit code."""
    options = parse(arguments, components, extras)
    component = load(options.component)
    options = options.with_default_namespace(component.namespace)
    log.setup(options.verbosity, options.logging_format)
    if options.kubeconfig:
        os.environ["KUBECONFIG"] = options.kubeconfig
    try:
        asyncio.run(_run_until_signal(component, options))
    except Exception as error:
        _log.error("the manager ends", error=repr(error), exc_info=error)
        return 1
    return 0


async def _run_until_signal(component: Component, options: Options) -> None:
    stop, loop, metrics = asyncio.Event(), asyncio.get_running_loop(), Metrics()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    client = LightkubeClient(metrics, field_manager=component.label)
    try:
        await Manager(component, options, client, metrics).run(stop)
    finally:
        await client.close()


class Manager:
    """The manager of one provider, from start to stop."""

    def __init__(
        self, component: Component, options: Options, client: KubeClient, metrics: Metrics
    ) -> None:
        self._component = component
        self._options = options
        self._client = client
        self._metrics = metrics
        self._builder: ManagerBuilder | None = None
        self._elector = self._new_elector() if options.leader_elect else None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set; raise the error that made the manager stop."""
        checks = {"caches": self._is_synced, "controllers": self._is_ready}
        server = DiagnosticsServer(self._options.diagnostics_address, self._metrics, checks)
        await server.start()
        ended = False
        tasks = [_start(stop.wait(), "stop"), _start(self._work(), "work")]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ended = await self._finish()
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            # Release the lease only if all work has ended; otherwise the next leader waits.
            if self._elector is not None and ended:
                await self._elector.release()
            await server.close()
        for result in results:
            if isinstance(result, Exception):
                raise result

    async def _work(self) -> None:
        reader = await self._core_reader()
        scope = WatchScope(
            namespace=self._options.namespace,
            watch_filter=self._options.watch_filter,
            own_namespace=self._options.own_namespace,
        )
        builder = ManagerBuilder(
            self._component, self._options, self._client, self._metrics, reader, scope
        )
        self._builder = builder
        async with asyncio.TaskGroup() as group:
            for informer in builder.informers:
                group.create_task(informer.run())
            group.create_task(builder.events.run())
            for each in builder.groups:
                for runnable in each.runnables:
                    group.create_task(runnable())
            group.create_task(self._watch_core(reader))
            # A manager that does not lead keeps its caches up to date, to take over at once.
            for informer in builder.informers:
                await informer.synced.wait()
            _log.info("caches are synced", core=reader.version)
            if self._elector is not None:
                await self._elector.acquire()
                group.create_task(self._elector.hold())
            for controller in builder.controllers:
                group.create_task(controller.run())
            for each in builder.groups:
                for runnable in each.leader_runnables:
                    group.create_task(runnable())

    async def _finish(self) -> bool:
        """Wait for running reconciles; return False if some did not end in time."""
        if self._builder is None:
            return True
        stops = [controller.stop(STOP_SECONDS) for controller in self._builder.controllers]
        ended = all(await asyncio.gather(*stops))
        if not ended:
            _log.warning("some reconciles did not end in time", seconds=STOP_SECONDS)
        return ended

    async def _core_reader(self) -> CoreReader:
        """Wait until core is installed, and return the reader of its API version."""
        while True:
            try:
                return choose(await self._client.served_versions(CORE_GROUP))
            except (CoreNotServedError, ApiError) as error:
                _log.warning("cannot start yet", error=str(error))
            await asyncio.sleep(CORE_RETRY_SECONDS)

    async def _watch_core(self, reader: CoreReader) -> None:
        while True:
            await asyncio.sleep(CORE_CHECK_SECONDS)
            try:
                now = choose(await self._client.served_versions(CORE_GROUP))
            except (CoreNotServedError, ApiError):
                continue  # the informers log the same error
            if now.version != reader.version:
                await self._finish()
                raise CoreVersionChangedError(f"from {reader.version} to {now.version}")

    def _is_synced(self) -> bool:
        builder = self._builder
        return builder is not None and all(i.synced.is_set() for i in builder.informers)

    def _is_ready(self) -> bool:
        builder = self._builder
        return builder is not None and all(each.ready for each in builder.groups)

    def _new_elector(self) -> LeaderElector:
        key = NamespacedName(
            self._options.lease_namespace, f"{self._component.label}-leader-election"
        )
        identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        return LeaderElector(
            self._client, key, identity, self._metrics, timings=self._options.timings
        )


def _start(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    return asyncio.create_task(work, name=name)
