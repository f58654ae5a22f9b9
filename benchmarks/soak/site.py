"""Two managers behind a proxy with faults, and machines that come and go."""

from __future__ import annotations

import itertools
import json
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

from benchmarks.cluster import NAMESPACE, Cluster
from benchmarks.load import Load
from benchmarks.soak.processes import Manager
from capsmith.clusters.processes.wait import eventually
from capsmith_runtime.testing.faults import NONE, Faults
from tests.runtime.support.proxy import FaultProxy

MACHINES = 24
"""As many exist at most, but for those that are being deleted."""
STEP = 3
"""As many are created and deleted at a time."""
WAIT_SECONDS = 300.0
_FLAGS = (
    "--leader-elect",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=4s",
    "--leader-elect-retry-period=1s",
    "--hook-timeout=5s",
    "--graceful-shutdown-timeout=5s",
)
_Object = dict[str, Any]


class Site:
    """Everything that faults happen to."""

    def __init__(
        self, cluster: Cluster, folder: Path, rng: Random, *, sync_seconds: int, pace: float
    ) -> None:
        """``pace`` is a factor for the duration of faults."""
        self.cluster = cluster
        self.rng = rng
        self._pace = pace
        self.proxy = FaultProxy(urlsplit(cluster.server.url).port or 0, cluster.pki)
        self.load = Load(cluster)
        self.live: set[str] = set()
        self.leaving: set[str] = set()
        self.vanished: set[str] = set()
        """Live ones whose servers have disappeared."""
        self.cloud = folder / "cloud"
        self._folder = folder
        self._faults = folder / "faults"
        self._flags = (*_FLAGS, f"--sync-period={sync_seconds}s")
        self._names = (f"machine-{number}" for number in itertools.count())
        self.managers: list[Manager] = []
        self.kills = 0
        """How often a manager was killed."""
        self.created = 0
        """Machines that were created."""

    def start(self) -> None:
        self.proxy.start()
        text = self.cluster.kubeconfig.read_text(encoding="utf-8")
        kubeconfig = self._folder / "proxied.kubeconfig"
        kubeconfig.write_text(text.replace(self.cluster.server.url, self.proxy.url))
        for number in range(2):
            name = f"manager-{number}"
            manager = Manager(
                self.cluster, self._folder, name, kubeconfig, *self._flags, faults=self._faults
            )
            self.managers.append(manager)
        self.ensure()
        self.load.start()

    def stop(self) -> None:
        self.load.stop()
        for manager in self.managers:
            manager.send(signal.SIGCONT)
            manager.process.kill()
        self.proxy.stop()

    def ensure(self) -> None:
        """Start managers that have ended, and wait until one leads."""
        self.wait(lambda: any(each.leads for each in self.managers), "a manager leads")

    def wait(self, probe: Callable[[], object], what: str, timeout: float = WAIT_SECONDS) -> None:
        """Wait for a state; as a Deployment does, start managers that end meanwhile.

        Raises TimeoutError after some seconds.
        """

        def look() -> object:
            for manager in self.managers:
                if not manager.process.running:
                    manager.launch()
            return probe()

        eventually(look, timeout=timeout, what=what, interval=0.3)

    def kill(self, manager: Manager) -> None:
        """Kill a manager in the middle of what it does, and start it again."""
        manager.process.kill()
        self.kills += 1
        manager.launch()

    def heal(self) -> None:
        """End all faults."""
        self.proxy.calm()
        self.proxy.requests.clear()
        self.simulate(NONE)
        for manager in self.managers:
            manager.send(signal.SIGCONT)
        self.cluster.etcd.process.send(signal.SIGCONT)
        self.ensure()

    def simulate(self, faults: Faults) -> None:
        """Let calls of the cloud fail from now on."""
        draft = self._faults.with_suffix(".new")
        draft.write_text(str(faults), encoding="utf-8")
        draft.replace(self._faults)

    def pause(self, least: float, most: float) -> None:
        """Wait for some seconds."""
        time.sleep(self._pace * self.rng.uniform(least, most))

    def leader(self) -> Manager:
        """The manager that leads, or any while none does."""
        return next((each for each in self.managers if each.leads), self.managers[0])

    def churn(self) -> list[str]:
        """Create machines and delete others; return the new ones.

        Those whose servers disappeared are replaced.
        """
        new = list(itertools.islice(self._names, STEP))
        self.load.make(new)
        self.load.release(new)
        self.live.update(new)
        self.created += len(new)
        excess = max(0, len(self.live) - MACHINES)
        older = sorted(self.live.difference(new))
        self.delete(self.vanished | set(self.rng.sample(older, min(STEP, excess))))
        return new

    def delete(self, names: set[str]) -> None:
        self.load.delete(sorted(names))
        self.live -= names
        self.vanished -= names
        self.leaving |= names
        self.forget_gone()

    def forget_gone(self) -> None:
        """Delete the Machines whose infrastructure machines are gone, as core does."""
        existing = self.machines()
        gone = {name for name in self.leaving if name not in existing}
        self.load.forget(sorted(gone))
        self.leaving -= gone

    def machines(self) -> dict[str, _Object]:
        """The infrastructure machines by name."""
        c = self.cluster
        found = c.client.list(f"{c.group}/{c.version}", "AcmeMachine", NAMESPACE)
        return {each["metadata"]["name"]: each for each in found}

    def provisioned(self) -> list[str]:
        """The live machines that are provisioned, and whose servers exist."""
        machines = self.machines()
        return [
            name
            for name in sorted(self.live - self.vanished)
            if machines.get(name, {}).get("status", {}).get("initialization", {}).get("provisioned")
        ]

    def has_finalizer(self, name: str) -> bool:
        """Whether the leader has begun with an infrastructure machine."""
        return bool(self.machines()[name]["metadata"].get("finalizers"))

    def servers(self) -> dict[str, Path]:
        """The servers in the cloud by the names of their machines."""
        found = {}
        for path in (self.cloud / "servers").glob("*.json"):
            with suppress(FileNotFoundError):  # deleted between the list and the reading
                found[json.loads(path.read_text(encoding="utf-8"))["name"]] = path
        return found

    def journal(self) -> list[str]:
        """What was created and deleted in the cloud."""
        path = self.cloud / "journal.log"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
