"""The operator of `operator_main` as processes, and the cloud that they share."""

from __future__ import annotations

import os
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from capsmith.clusters.processes.process import Process, free_port, probe_http
from capsmith.clusters.processes.wait import eventually

from .server import JSON, Api

_MAIN = Path(__file__).parents[1] / "operator_main.py"


class Operator(Process):
    """One operator process; `start` does not wait until it leads."""

    def __init__(
        self, name: str, runtime: Path, kubeconfig: Path, folder: Path, options: list[str]
    ) -> None:
        self._port = free_port()
        argv: list[str | Path] = [
            sys.executable,
            # Without its folder, in which `resource` is not the module of that name.
            "-P",
            _MAIN,
            f"--identity={name}",
            f"--diagnostics=127.0.0.1:{self._port}",
            *options,
        ]
        env = {**os.environ, "PYTHONPATH": str(runtime), "KUBECONFIG": str(kubeconfig)}
        super().__init__(name, argv, folder / f"{name}.log", env)

    def start(self) -> None:
        super().start()
        self.wait_ready(probe_http(f"http://127.0.0.1:{self._port}/readyz"))

    def leads(self) -> bool:
        return self.metric("leader") == 1

    def metric(self, name: str) -> float:
        url = f"http://127.0.0.1:{self._port}/metrics"
        with urllib.request.urlopen(url, timeout=60) as response:
            lines = response.read().decode().splitlines()
        return float(next(line.split()[-1] for line in lines if line.startswith(f"{name} ")))

    def wait_exited(self, timeout: float = 60) -> int:
        """Wait until the process ends by itself, and return its exit code."""
        eventually(lambda: not self.running, timeout=timeout, what=f"{self.name} ends")
        assert self._child is not None
        return int(self._child.returncode)


@dataclass
class Site:
    """A namespace with Widgets, a cloud, and the operators that work there."""

    api: Api
    namespace: str
    kubeconfig: Path
    runtime: Path
    folder: Path
    operators: list[Operator] = field(default_factory=list)

    @property
    def cloud(self) -> Path:
        found = self.folder / "cloud"
        found.mkdir(exist_ok=True)
        return found

    def operator(self, name: str, *options: str) -> Operator:
        common = [f"--cloud={self.cloud}", f"--namespace={self.namespace}", *options]
        made = Operator(name, self.runtime, self.kubeconfig, self.folder, common)
        self.operators.append(made)
        return made

    def provisioned(self) -> list[JSON]:
        widgets = self.api.widgets(self.namespace)
        return [each for each in widgets if each.get("status", {}).get("provisioned")]

    def converged(self, count: int, timeout: float = 120) -> None:
        eventually(lambda: len(self.provisioned()) == count, timeout=timeout, what="convergence")

    def journal(self) -> list[list[str]]:
        """Return action, uid and operator of everything that was done in the cloud."""
        path = self.cloud / "journal"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def done(self, action: str) -> Counter[str]:
        """Return the number of times that an action was done, by uid."""
        return Counter(uid for what, uid, _ in self.journal() if what == action)


@contextmanager
def stopped(site: Site) -> Iterator[Site]:
    """Return a context manager that stops all operators that a test leaves running."""
    try:
        yield site
    finally:
        for operator in site.operators:
            operator.stop()
