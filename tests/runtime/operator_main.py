"""A complete little operator on the runtime, run as a process of its own by the tests.

It makes one "server" for each Widget of a namespace in a directory, looked up by the Widget's
uid, and needs three requests for a Widget: finalizer, spec.providerID, status.
"""

from __future__ import annotations

import argparse
import asyncio
import copy
import fcntl
import os
import signal
import sys
from pathlib import Path

from capsmith_runtime.kube import log
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType, Selection
from capsmith_runtime.kube.controller import Controller, Result
from capsmith_runtime.kube.diagnostics import DiagnosticsServer
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.leaderelection import LeaderElector, LeadershipLost, LeaseTimings
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.patch import write
from capsmith_runtime.kube.workqueue import WorkQueue

WIDGET = ResourceType("runtime.capsmith.test", "v1", "Widget", "widgets")
FINALIZER = "runtime.capsmith.test/server"
LOST = 3


class Cloud:
    """Servers are files; the journal tells what was made and deleted, and by whom."""

    def __init__(self, folder: Path, identity: str) -> None:
        self._folder = folder
        self._identity = identity

    def ensure(self, uid: str) -> None:
        # The entry is the creation, in one write: a process that is killed between the file and
        # the entry would leave a server without one.
        with (self._folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if uid not in self._created():
                self._note("create", uid)
            (self._folder / uid).touch()

    def _created(self) -> set[str]:
        journal = self._folder / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return {uid for action, uid, _ in map(str.split, lines) if action == "create"}

    def remove(self, uid: str) -> None:
        (self._folder / uid).unlink(missing_ok=True)
        self._note("delete", uid)

    def _note(self, action: str, uid: str) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self._folder / "journal", flags)
        os.write(descriptor, f"{action} {uid} {self._identity}\n".encode())
        os.close(descriptor)


class Operator:
    """Put together as a generated manager is."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.cloud = Cloud(Path(options.cloud), options.identity)
        self.metrics = Metrics()
        self.client = LightkubeClient(
            self.metrics,
            field_manager="widget-operator",
            silence_seconds=options.silence,
            watch_seconds=(options.watch, options.watch),
        )
        selection = Selection(options.namespace)
        self.widgets = Informer(self.client, WIDGET, self.metrics, selection=selection)
        self.queue: WorkQueue[NamespacedName] = WorkQueue("widget", self.metrics)
        self.hooks = HandlerExecutor(self.metrics, threads=16, timeout=10)
        self.widgets.add_handler(lambda change: self.queue.add(change.key), own_writes=False)
        self.controller = Controller(
            "widget", self.queue, self.reconcile, self.metrics, concurrency=options.concurrency
        )
        self.elector = LeaderElector(
            self.client,
            NamespacedName(options.namespace, "widget-operator"),
            options.identity,
            self.metrics,
            timings=LeaseTimings(*map(float, options.lease.split("/"))),
        )

    async def reconcile(self, key: NamespacedName) -> Result:
        old = self.widgets.get(key)
        if old is None:
            return Result()
        uid, new = old["metadata"]["uid"], copy.deepcopy(old)
        if old["metadata"].get("deletionTimestamp"):
            await self.hooks.call(self.cloud.remove, uid)
            new["metadata"]["finalizers"] = []
            await self.write(old, new)
            return Result()
        new["metadata"]["finalizers"] = [FINALIZER]
        old = await self.write(old, new)
        await self.hooks.call(self.cloud.ensure, uid)
        new = copy.deepcopy(old)
        new["spec"]["providerID"] = f"widget://{uid}"
        old = await self.write(old, new)
        new = copy.deepcopy(old)
        new["status"] = {"provisioned": True, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.write(old, new)
        return Result()

    async def write(self, old: JSON, new: JSON) -> JSON:
        return await write(self.client, WIDGET, old, new, self.widgets.update_from_write)

    async def run(self) -> int:
        stopping = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
        checks = {"informers": self.widgets.synced.is_set}
        server = DiagnosticsServer(self.options.diagnostics, self.metrics, checks)
        await server.start()
        tasks = [asyncio.create_task(self.work()), asyncio.create_task(stopping.wait())]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await self.controller.stop(5)
        for task in tasks:
            task.cancel()
        work, _ = await asyncio.gather(*tasks, return_exceptions=True)
        await self.elector.release()
        await server.close()
        await self.client.close()
        if isinstance(work, BaseExceptionGroup) and work.subgroup(LeadershipLost):
            return LOST
        return int(isinstance(work, Exception))

    async def work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.widgets.run())
            await self.widgets.synced.wait()
            await self.elector.acquire()
            group.create_task(self.elector.hold())
            group.create_task(self.controller.run())


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cloud", required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--diagnostics", default="127.0.0.1:0")
    parser.add_argument("--lease", default="15/10/2")
    parser.add_argument("--identity", default="operator")
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--silence", type=float, default=90.0)
    parser.add_argument("--watch", type=float, default=300.0)
    options = parser.parse_args()
    log.configure()

    async def start() -> int:
        return await Operator(options).run()

    return asyncio.run(start())


if __name__ == "__main__":
    sys.exit(main())
