"""Managers of the generated provider as processes that are observed."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import ROOT, Cluster
from capsmith.clusters.processes.process import Process, free_port, probe_http
from tests.repositories import import_path

POOL_KIND = """\
  AcmePool:
    implements: InfraMachinePool
    features: {machines: true}
    machineKind: AcmeMachine
    spec:
      size: string!
      image: string!
"""
_LEADER = re.compile(rb"^leader (\S+)$", re.MULTILINE)
_ANSWER_SECONDS = 10.0


@dataclass(frozen=True)
class Block:
    """A callback that blocked the event loop."""

    seconds: float
    processor: float
    """Processor time of the event loop's thread; the rest is waiting for a processor or the GIL."""
    collector: float
    """Processor time of the garbage collector within it."""
    what: str


class Manager:
    """One process; `start` waits until it is ready."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        name: str,
        kubeconfig: Path,
        *arguments: str,
        faults: Path | None = None,
        tenants: Path | None = None,
    ) -> None:
        """``faults`` is a file with the faults of the cloud; ``clock`` then shifts the clock.

        ``tenants`` is a folder with a file for each tenant whose cloud has a fault.
        """
        self.name = name
        self.cloud = folder / "cloud"
        self.clock = folder / f"{name}.clock"
        self._blocks = folder / f"{name}.blocks"
        self._url = f"http://127.0.0.1:{free_port()}"
        runner = [sys.executable, "-m", "benchmarks.soak.manager", cluster.package]
        address = self._url.removeprefix("http://")
        self.process = Process(
            name,
            [*runner, "--namespace=", f"--diagnostics-address={address}", *arguments],
            folder / f"{name}.log",
            {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([import_path(cluster.repository), str(ROOT)]),
                "KUBECONFIG": str(kubeconfig),
                "POD_NAMESPACE": cluster.namespace,
                "CAPSMITH_SIMULATED_CLOUD_DIR": str(self.cloud),
                "SOAK_BLOCKS": str(self._blocks),
                "SOAK_CLOCK": "" if faults is None else str(self.clock),
                "SOAK_TENANTS": str(tenants or ""),
                "CAPSMITH_SIMULATED_FAULTS": "" if faults is None else f"@{faults}",
            },
        )

    def start(self) -> None:
        self.process.start()
        self.process.wait_ready(probe_http(f"{self._url}/readyz"))

    def launch(self) -> None:
        """Start it without waiting until it is ready."""
        self.process.start()

    @property
    def is_alive(self) -> bool:
        """Whether it answers its liveness probe, in bounded time."""
        return probe_http(f"{self._url}/healthz")()

    @property
    def threads(self) -> int:
        """The number of its threads."""
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    @property
    def leads(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/metrics", timeout=_ANSWER_SECONDS) as answer:
                found = _LEADER.search(answer.read())
        except OSError:
            return False
        return found is not None and float(found[1]) == 1.0

    def send(self, number: signal.Signals) -> None:
        if self.process.running:
            os.kill(self.process.pid, number)

    def blocks(self) -> list[Block]:
        """Callbacks that blocked the event loop since the last call."""
        if not self._blocks.exists():
            return []
        lines = self._blocks.read_text(encoding="utf-8").splitlines()
        self._blocks.unlink()
        return [
            Block(found["seconds"], found["processor"], found["collector"], found["what"])
            for found in map(json.loads, lines)
        ]
