"""The manager of one process: runs its caches, queues, controllers and leader election."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Final

from capsmith_runtime.builder import ManagerBuilder
from capsmith_runtime.component import Component
from capsmith_runtime.contract.constants import CORE_GROUP
from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.versions import CoreNotServedError, choose
from capsmith_runtime.errors import ApiError
from capsmith_runtime.features import UnknownFeatureGateError, find_unknown_gates, set_feature_gates
from capsmith_runtime.kube import log
from capsmith_runtime.kube.client import KubeClient, NamespacedName
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.connection import ConfigError
from capsmith_runtime.kube.diagnostics import Check, Diagnostics
from capsmith_runtime.kube.handler_calls import DaemonThreadPool
from capsmith_runtime.kube.leaderelection import (
    LeaderElector,
    LeadershipLost,
    LeaseWatchdog,
    create_identity,
)
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.process import (
    EndProcess,
    GcPauseLimiter,
    SetAlarm,
    exit_process,
    exit_process_later,
    set_no_alarm,
    set_process_alarm,
)
from capsmith_runtime.kube.request_limit import RequestLimit
from capsmith_runtime.kube.state_dump import dump_on_signal
from capsmith_runtime.kube.tracing import start_tracing, stop_tracing
from capsmith_runtime.options import ExtraFlags, Options, parse
from capsmith_runtime.reconcile.caches import WatchScope
from capsmith_runtime.version import read_build

_log = log.get_logger("manager")

WEBHOOK_CHECK: Final = "webhook"
"""Name of the readiness check in Deployments with webhooks, as in /readyz/webhook.

The check does not wait for the caches: to list objects stored in another version, the API server
must already reach the manager's conversion webhook.
"""
CORE_RETRY_SECONDS: Final = 5.0
CORE_CHECK_SECONDS: Final = 300.0
CLOSE_SECONDS: Final = 3.0
"""Seconds reserved for closing sessions when the manager stops; Kubernetes adds ten more."""
EXIT_SECONDS: Final = 5.0
"""Seconds by which exit handlers and the author's libraries may delay the process's exit."""


KUBECONFIG_HINT: Final = "set KUBECONFIG or --kubeconfig, or run the manager in a cluster"


class CoreVersionChangedError(Exception):
    """Raised if core was upgraded, so the manager must restart to use the new API version."""


def main(
    components: Sequence[str],
    load: Callable[[str], Component],
    arguments: Sequence[str] | None = None,
    extras: Sequence[ExtraFlags] = (),
    distribution: str = "",
) -> int:
    """Run one of the components until a signal arrives, and return the exit code.

    ``load`` creates the component of a given type. ``distribution`` is the provider's distribution
    name in pip; ``--version`` prints its version.
    """
    options = parse(arguments, components, extras, distribution)
    component = load(options.component)
    try:
        _set_feature_gates(options, components, load)
    except UnknownFeatureGateError as error:
        print(f"--feature-gates: {error}", file=sys.stderr)
        return 2
    # The default namespace is that of the component.
    options = options.with_default_namespace(component.namespace)
    package = load.__module__.partition(".")[0]
    log.configure(options.verbosity, options.logging_format, [package])
    build = read_build(distribution)
    _log.info("starting", component=options.component, **build._asdict())
    if options.kubeconfig:
        os.environ["KUBECONFIG"] = options.kubeconfig
    metrics = Metrics()
    metrics.show_build(*build)
    # Before the caches are filled: the first full collections after that are the slow ones.
    GcPauseLimiter().start()
    try:
        # Outside of the event loop, which the HTTP library's late imports would block.
        client = _create_client(component, options, metrics)
        asyncio.run(_run_until_signal(component, options, client, metrics))
    except ConfigError as error:
        _log.error("no cluster to connect to", error=str(error), hint=KUBECONFIG_HINT)
        return 1
    except Exception as error:
        _log.error("the manager ends", error=repr(error), exc_info=error)
        return 1
    return 0


def _set_feature_gates(
    options: Options, components: Sequence[str], load: Callable[[str], Component]
) -> None:
    if find_unknown_gates(options.feature_gates):
        # clusterctl passes the same variable to all components of a repository, whose modules are
        # loaded separately: a gate of another component is not an error.
        for each in components:
            load(each)
    set_feature_gates(options.feature_gates)


def _create_client(component: Component, options: Options, metrics: Metrics) -> LightkubeClient:
    return LightkubeClient(
        metrics,
        field_manager=component.label,
        limit=RequestLimit(options.kube_api_qps, options.kube_api_burst),
    )


async def _run_until_signal(
    component: Component, options: Options, client: LightkubeClient, metrics: Metrics
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_or_exit, stop)
    dump_on_signal(loop)
    start_tracing(component.label)
    code = 1
    try:
        checks = {"connection": lambda: client.is_trusted}
        manager = Manager(
            component, options, client, metrics, checks=checks, set_alarm=set_process_alarm
        )
        await manager.run(stop)
        code = 0
    finally:
        # Armed before the connections are closed: from here on nothing may keep the process alive.
        exit_process_later(EXIT_SECONDS, code)
        await client.close()
        await asyncio.to_thread(stop_tracing)


def _stop_or_exit(stop: asyncio.Event) -> None:
    """Stop at the first signal; end the process at the second."""
    if stop.is_set():
        # The first signal has not ended the process, so the second one does not wait for anything.
        exit_process(1)
    stop.set()


class Manager:
    """Runs one component's caches, controllers and leader election; it can run only once."""

    def __init__(
        self,
        component: Component,
        options: Options,
        client: KubeClient,
        metrics: Metrics,
        end_process: EndProcess = exit_process,
        *,
        checks: Mapping[str, Check] = {},
        set_alarm: SetAlarm = set_no_alarm,
    ) -> None:
        self._component = component
        self._options = options
        self._client = client
        self._metrics = metrics
        self._end_process = end_process
        self._checks: dict[str, Check] = {
            "caches": self._is_synced,
            "shutdown": lambda: not self._is_stopping,
            WEBHOOK_CHECK: self._serves_webhooks,
            **checks,
        }
        self._is_stopping = False
        self._builder: ManagerBuilder | None = None
        self._reader: asyncio.Future[CoreReader] = asyncio.get_running_loop().create_future()
        self._synced, self._leading = asyncio.Event(), asyncio.Event()
        self._leader_tasks: list[asyncio.Task[None]] = []
        self._elector = self._new_elector(set_alarm) if options.leader_elect else None
        self._watchdog = LeaseWatchdog(self._elector, end_process) if self._elector else None

    async def run(self, stop: asyncio.Event) -> None:
        """Run until ``stop`` is set, or raise the error that stops the manager earlier.

        The process exits immediately if the lease is lost, or if the author's code is still running
        at the end: another manager may become the leader while this one is still creating a
        machine.
        """
        pool = DaemonThreadPool(self._options.hook_threads)
        # asyncio.to_thread in the author's code uses this executor, so its threads are tracked as
        # well.
        asyncio.get_running_loop().set_default_executor(pool)
        health = {"handlers": self._is_healthy}
        server = Diagnostics(
            self._options.diagnostics, self._client, self._metrics, self._checks, health
        )
        # Before everything else, so that probes respond while the caches are being filled.
        await server.start()
        has_drained = None
        lead = _start(self._lead(), "lead")
        tasks = [
            _start(stop.wait(), "stop"),
            _start(self._work(), "work"),
            _start(self._watch_core(), "core"),
            lead,
            _start(server.run(), "diagnostics"),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            self._is_stopping = True
            if stop.is_set():
                await self._stop(lead)
            else:
                has_drained = await self._finish()
        finally:
            for task in tasks:
                task.cancel()
            # All tasks have to end before the lease is released.
            results = await asyncio.gather(*tasks, return_exceptions=True)
            errors = [result for result in results if isinstance(result, Exception)]
            if has_drained is not None:
                await self._end_term(has_drained, errors)
            if self._watchdog is not None:
                self._watchdog.stop()
            await server.close()
        for error in errors:
            raise error

    async def _work(self) -> None:
        reader = await self._core_reader()
        scope = WatchScope(
            namespaces=self._options.namespaces,
            excluded_namespaces=self._options.excluded_namespaces,
            watch_filter=self._options.watch_filter,
            own_namespace=self._options.own_namespace,
        )
        builder = ManagerBuilder(
            self._component, self._options, self._client, self._metrics, reader, scope
        )
        self._builder = builder
        self._reader.set_result(reader)
        self._checks.update({each.name: each.is_ready for each in builder.readiness_checks})
        async with asyncio.TaskGroup() as group:
            for check in builder.readiness_checks:
                group.create_task(check.run())
            for informer in builder.informers:
                group.create_task(informer.run())
            group.create_task(builder.events.run())
            for each in builder.groups:
                for runnable in each.runnables:
                    group.create_task(runnable())
            # Managers that do not lead keep their caches up to date, to take over immediately.
            for informer in builder.informers:
                await informer.synced.wait()
            _log.info("caches are synced", core=reader.version)
            self._synced.set()
            await self._leading.wait()
            if self._elector is not None:
                # A watch may lag behind the former leader's actions: a machine that it deleted
                # would be created again.
                await asyncio.gather(*(informer.refresh() for informer in builder.informers))
            if self._is_stopping:
                return
            for controller in builder.controllers:
                group.create_task(controller.run())
            for each in builder.groups:
                for runnable in each.leader_runnables:
                    self._leader_tasks.append(group.create_task(runnable()))

    async def _lead(self) -> None:
        """Acquire the lease when the caches are synced, and renew it until cancelled.

        The lease is renewed independently of the work: even if the work has failed, no other
        manager may lead before the author's running code has ended.
        """
        await self._synced.wait()
        if self._elector is None or self._watchdog is None:
            self._leading.set()
            await asyncio.Event().wait()
            return
        await self._elector.acquire()
        self._watchdog.start()
        self._leading.set()
        try:
            await self._elector.hold()
        except LeadershipLost as error:
            _log.error("the lease is lost: the process ends", error=str(error))
            self._end_process(1)
            raise

    async def _stop(self, lead: asyncio.Task[None]) -> None:
        """End all work and release the lease, and serve webhooks until clients are redirected."""
        groups = self._builder.groups if self._builder is not None else ()
        await asyncio.gather(self._hand_over(lead), *(group.drain() for group in groups))

    async def _hand_over(self, lead: asyncio.Task[None]) -> None:
        """Release the lease as soon as all work has ended, so that another manager can lead."""
        if not self._leading.is_set():
            lead.cancel()
        has_drained = await self._finish()
        for task in (*self._leader_tasks, lead):
            task.cancel()
        await asyncio.gather(*self._leader_tasks, lead, return_exceptions=True)
        await self._end_term(has_drained, ())

    async def _finish(self) -> bool:
        """Wait for running reconciles, and return whether all of them ended in time."""
        if self._builder is None:
            return True
        seconds = self._options.graceful_shutdown_timeout
        # While controllers stop, the lease is still renewed by its own task.
        stops = [controller.stop(seconds) for controller in self._builder.controllers]
        end = monotonic() + seconds
        has_drained = all(await asyncio.gather(*stops))
        with contextlib.suppress(TimeoutError):
            # Background tasks call the author's code, too, and a call may leave threads behind.
            async with asyncio.timeout(max(0.0, end - monotonic())):
                await self._builder.executor.calls.wait()
        await self._builder.sessions.close(max(CLOSE_SECONDS, end - monotonic()))
        return has_drained

    async def _end_term(self, has_drained: bool, errors: Sequence[Exception]) -> None:
        """Release the lease if all work has ended; otherwise end the process immediately."""
        calls = self._builder.executor.calls if self._builder is not None else None
        if has_drained and (calls is None or calls.have_ended):
            if self._elector is not None:
                await self._elector.release()
            return
        for error in errors:
            _log.error("the manager ends", error=repr(error), exc_info=error)
        running = ", ".join(calls.names) if calls is not None else ""
        _log.error("reconciles did not end: the process ends, with its lease", calls=running)
        self._end_process(1)

    async def _core_reader(self) -> CoreReader:
        """Wait until core is installed, and return the reader of its API version."""
        while True:
            try:
                return choose(await self._client.served_versions(CORE_GROUP))
            except (CoreNotServedError, ApiError) as error:
                _log.warning("cannot start yet", error=str(error))
            await asyncio.sleep(CORE_RETRY_SECONDS)

    async def _watch_core(self) -> None:
        reader = await self._reader
        while True:
            await asyncio.sleep(CORE_CHECK_SECONDS)
            try:
                now = choose(await self._client.served_versions(CORE_GROUP))
            except (CoreNotServedError, ApiError):
                continue  # the informers log the same error
            # Caches, indexes and queues all depend on the version: a restart is simpler than
            # replacing them.
            if now.version != reader.version:
                raise CoreVersionChangedError(f"from {reader.version} to {now.version}")

    def _is_synced(self) -> bool:
        builder = self._builder
        return builder is not None and all(i.synced.is_set() for i in builder.informers)

    def _serves_webhooks(self) -> bool:
        """Return whether a Service may forward requests: only between startup and shutdown."""
        builder = self._builder
        is_serving = builder is not None and all(each.ready for each in builder.groups)
        return is_serving and not self._is_stopping

    def _is_healthy(self) -> bool:
        builder = self._builder
        if builder is None:
            return True
        return builder.executor.is_healthy and all(each.healthy for each in builder.groups)

    def _new_elector(self, set_alarm: SetAlarm) -> LeaderElector:
        options = self._options
        name = lease_name(
            self._component.label,
            options.watch_filter,
            options.namespaces,
            options.excluded_namespaces,
        )
        key = NamespacedName(options.lease_namespace, name)
        return LeaderElector(
            self._client,
            key,
            create_identity(),
            self._metrics,
            timings=self._options.timings,
            set_alarm=set_alarm,
        )


def lease_name(
    label: str, watch_filter: str, namespaces: Sequence[str], excluded: Sequence[str] = ()
) -> str:
    """Return the name of the lease that managers for the same objects share.

    Managers that are limited to some objects by a filter or by namespaces have a separate lease, so
    each subset has one leader even if all managers share a namespace.  The order of the namespaces
    does not matter.
    """
    name = f"{label}-leader-election"
    if not watch_filter and not namespaces and not excluded:
        return name
    text = f"{watch_filter}\n{','.join(sorted(namespaces))}"
    if excluded:
        text += f"\n{','.join(sorted(excluded))}"
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _start(work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
    return asyncio.create_task(work, name=name)
