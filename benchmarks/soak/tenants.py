"""Tenants with an identity each, some of whose clouds have a fault: the others must not notice."""

from __future__ import annotations

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cluster import Cluster, cluster
from benchmarks.load import Load
from benchmarks.soak.processes import Manager
from benchmarks.soak.report import Figure, print_figures

TENANTS = 20
FAULTS = {"tenant-0": "hang", "tenant-1": "refuse", "tenant-2": "late"}
ROTATED = "tenant-3"
"""The tenant whose Secret changes every minute."""
ROTATION_SECONDS = 60.0
BURST = 40
"""Machines that the tenant whose cloud hangs creates at the beginning: more than workers."""
PACE_SECONDS = 3.0
"""Time between two machines of a tenant."""
SERVED_LIMIT_SECONDS = 2.0
THREADS_LIMIT = 150
RSS_LIMIT_MIB = 200.0
SETTLE_SECONDS = 120.0
RECOVERY_SECONDS = 400.0
"""Time after the faults until each object has been tried again: back-off ends at 375 s."""


@dataclass
class Tenant:
    """One tenant: a namespace, an identity with its Secret, and a Cluster."""

    name: str
    api: Cluster
    latencies: list[tuple[float, float]] = field(default_factory=list)
    """When each machine was released, and after how many seconds it was provisioned."""
    unserved: int = 0
    """Machines that were not provisioned within the limit for settling."""
    created: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        reference = {"kind": "AcmeIdentity", "name": self.name}
        self.load = Load(self.api, self.name, reference)
        self._names = (f"{self.name}-{number}" for number in itertools.count())

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong with its cloud at any time."""
        return self.name not in FAULTS

    def start(self) -> None:
        """Create everything but machines."""
        client = self.api.client
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}})
        self.write_secret(0)
        client.apply(
            {
                "apiVersion": f"{self.api.group}/{self.api.version}",
                "kind": "AcmeIdentity",
                "metadata": {"name": self.name},
                "spec": {
                    "secretRef": {"name": self.name},
                    "allowedNamespaces": {"list": [self.name]},
                },
            }
        )
        self.load.start()

    def write_secret(self, generation: int) -> None:
        """Write another token for the same tenant."""
        self.api.client.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self.name, "namespace": self.api.namespace},
                "stringData": {"token": f"{self.name}.{generation}"},
            }
        )

    def create(self, count: int) -> list[str]:
        """Create machines without waiting for them."""
        names = list(itertools.islice(self._names, count))
        self.load.make(names)
        self.load.release(names)
        self.created += names
        return names

    def work(self, stopped: threading.Event) -> None:
        """Create a machine, wait until it is provisioned, delete it, and so on."""
        while not stopped.wait(PACE_SECONDS):
            (name,) = self.create(1)
            limit = SETTLE_SECONDS if self.is_healthy else SERVED_LIMIT_SECONDS
            try:
                self.load.wait([name], limit)
            except TimeoutError:
                self.unserved += 1
                continue
            (latency,) = self.load.latencies([name])
            self.latencies.append((self.load.released[name], latency))
            self.remove([name])

    def remove(self, names: list[str]) -> None:
        """Delete machines, and wait until they are gone."""
        self.load.delete(names)
        self.load.wait_gone(names, SETTLE_SECONDS)
        self.load.forget(names)
        self.created = [name for name in self.created if name not in names]


@dataclass
class Observed:
    """What the manager showed all the time."""

    failed_probes: int = 0
    threads: int = 0
    peak_rss: float = 0.0

    def observe(self, manager: Manager, stopped: threading.Event) -> None:
        """Probe the manager every second."""
        while not stopped.wait(1.0):
            self.failed_probes += not manager.is_alive
            self.threads = max(self.threads, manager.threads)
            self.peak_rss = max(self.peak_rss, manager.process.usage().peak_rss_mib)


def soak(api: Cluster, folder: Path, minutes: float) -> list[Figure]:
    """Run a quarter of the time without faults, then with them; return the figures."""
    faults = folder / "tenants"
    faults.mkdir()
    manager = Manager(api, folder, "manager", api.kubeconfig, tenants=faults)
    tenants = [Tenant(f"tenant-{number}", api) for number in range(TENANTS)]
    observed = Observed()
    manager.start()
    try:
        for tenant in tenants:
            tenant.start()
        works: list[Callable[[threading.Event], None]] = [each.work for each in tenants]
        works.append(lambda stopped: observed.observe(manager, stopped))
        works.append(lambda stopped: _rotate(tenants, stopped))
        with _Threads(works):
            time.sleep(minutes * 60.0 / 4)
            faulty = time.monotonic()
            _break(tenants, faults)
            time.sleep(minutes * 60.0 * 3 / 4)
            for path in faults.iterdir():
                path.unlink()
        return [*_latencies(tenants, faulty), *_ended(tenants, manager, observed)]
    finally:
        for tenant in tenants:
            tenant.load.stop()
        manager.process.stop()


def _break(tenants: list[Tenant], faults: Path) -> None:
    for name, fault in FAULTS.items():
        (faults / name).write_text(fault, encoding="utf-8")
    for tenant in tenants:
        if FAULTS.get(tenant.name) == "refuse":
            tenant.write_secret(-1)  # its session is opened again, and refused
    tenants[0].create(BURST)


def _rotate(tenants: list[Tenant], stopped: threading.Event) -> None:
    (tenant,) = (each for each in tenants if each.name == ROTATED)
    for generation in itertools.count(1):
        if stopped.wait(ROTATION_SECONDS):
            return
        tenant.write_secret(generation)


def _latencies(tenants: list[Tenant], faulty: float) -> list[Figure]:
    healthy = [each for each in tenants if each.is_healthy]
    served = [pair for each in healthy for pair in each.latencies]
    figures = []
    for phase, those in (
        ("without faults", [seconds for at, seconds in served if at < faulty]),
        ("with faults", [seconds for at, seconds in served if at >= faulty]),
    ):
        limit = SERVED_LIMIT_SECONDS if phase == "with faults" else None
        figures += [
            Figure(f"machines of others, {phase}", len(those)),
            Figure(f"latency of others, {phase}, median", statistics.median(those), "s"),
            Figure(f"latency of others, {phase}, p95", _share(those, 0.95), "s", limit),
            Figure(f"latency of others, {phase}, longest", max(those), "s"),
        ]
    unserved = sum(each.unserved for each in healthy)
    return [*figures, Figure("machines of others that were not served", unserved, "", 0.0)]


def _ended(tenants: list[Tenant], manager: Manager, observed: Observed) -> list[Figure]:
    """Wait until all tenants are served, delete everything, and count what is left."""
    began = time.monotonic()
    unsettled = 0
    for tenant in tenants:
        try:
            tenant.load.wait(tenant.created, RECOVERY_SECONDS)
            tenant.remove(list(tenant.created))
        except TimeoutError:
            unsettled += 1
    settled = time.monotonic() - began
    left = len(list((manager.cloud / "servers").glob("*.json")))
    lines = (manager.cloud / "journal.log").read_text(encoding="utf-8").splitlines()
    created = [line for line in lines if line.startswith("create server ")]
    return [
        Figure("faults over until all machines are served and deleted", settled, "s"),
        Figure("tenants that were not served in the end", unsettled, "", 0.0),
        Figure("failed liveness probes", observed.failed_probes, "", 0.0),
        Figure("most threads", observed.threads, "", THREADS_LIMIT),
        Figure("peak RSS", observed.peak_rss, "MiB", RSS_LIMIT_MIB),
        Figure("servers left", left, "", 0.0),
        Figure("servers created twice", len(created) - len(set(created)), "", 0.0),
    ]


def _share(values: list[float], share: float) -> float:
    return sorted(values)[int((len(values) - 1) * share)]


class _Threads:
    """Threads that run within a block; they end when the event that they get is set."""

    def __init__(self, works: list[Callable[[threading.Event], None]]) -> None:
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=work, args=[self._stopped], daemon=True) for work in works
        ]

    def __enter__(self) -> None:
        for thread in self._threads:
            thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()


def main(minutes: float, output: str, folder: Path | None = None) -> int:
    """Run and print; return 1 if a limit is exceeded.  Logs stay in ``folder``, if given."""
    kept = nullcontext(str(folder)) if folder else tempfile.TemporaryDirectory()
    with kept as name, cluster(Path(name), with_credentials=True) as api:
        figures = soak(api, Path(name), minutes)
    return print_figures(figures, output, f"{TENANTS} tenants for {minutes:g} minutes")
