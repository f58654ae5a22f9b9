"""Thousands of machines on a real API server: what they cost, and how long others wait."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cluster import NAMESPACE, Cluster, cluster
from benchmarks.load import Load
from benchmarks.runtime import READS, SETTLE_SECONDS
from benchmarks.soak.pool import Pool
from benchmarks.soak.processes import POOL_KIND, Block, Manager
from benchmarks.soak.report import Figure, print_figures
from capsmith.clusters.processes.wait import eventually

REQUESTS_LIMIT = 3.0
RSS_LIMIT_MIB = 200.0
BLOCK_LIMIT_MS = 100.0
RESTART_LIMIT_SECONDS = 5.0
TIMEOUT_SECONDS = 1800.0
STORM_CHANGES = 20
STORM_SECONDS = 0.25


@dataclass
class Run:
    """One manager, and the figures so far."""

    cluster: Cluster
    load: Load
    pool: Pool
    manager: Manager
    figures: list[Figure] = field(default_factory=list)
    peak_rss: float = 0.0
    blocks: list[tuple[str, Block]] = field(default_factory=list)

    def add(
        self, name: str, value: float, unit: str = "", limit: float | None = None, note: str = ""
    ) -> None:
        self.figures.append(Figure(name, value, unit, limit, note))

    def phase(self, name: str, work: Callable[[], None]) -> None:
        """Do a part, and keep what the manager used in it."""
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {name}\n")
        work()
        usage = self.manager.process.usage()
        self.peak_rss = max(self.peak_rss, usage.peak_rss_mib)
        self.blocks += [(name, block) for block in self.manager.blocks()]


def measure(pairs: int, replicas: int, clusters: int, folder: Path) -> list[Figure]:
    """Run all phases; the figures in the order in which they were taken."""
    with cluster(folder, POOL_KIND) as api:
        manager = Manager(api, folder, "manager", api.kubeconfig, "--concurrency=10")
        manager.start()
        load, before = Load(api, clusters=clusters), api.requests()
        load.start()
        run = Run(api, load, Pool(api, load.owner), manager)
        names = [f"machine-{number}" for number in range(pairs)]
        try:
            run.phase("converge", lambda: _converge(run, names, clusters, before))
            run.phase("pool", lambda: _pool(run, replicas))
            run.phase("restart", lambda: _restart(run, names))
            run.phase("label storm", lambda: _storm(run, names))
            run.phase("deletion", lambda: _delete(run, names))
        finally:
            run.pool.stop()
            load.stop()
            manager.process.stop()
    run.add("peak RSS", run.peak_rss, "MiB", RSS_LIMIT_MIB)
    run.figures += _longest_blocks(run.blocks)
    return run.figures


def _converge(run: Run, names: list[str], clusters: int, before: Counter[tuple[str, str]]) -> None:
    """Measure from the first Cluster on; ``before`` are the requests until then.

    The infrastructure clusters count as objects, because the manager reconciles them as well.
    """
    run.load.make(names[:1])
    run.load.release(names[:1])
    run.load.wait(names[:1], TIMEOUT_SECONDS)
    used = run.manager.process.usage().cpu_seconds
    run.load.make(names[1:])
    time.sleep(SETTLE_SECONDS)  # all of them are seen, and wait
    began = time.monotonic()
    run.load.release(names[1:])
    run.load.wait(names, TIMEOUT_SECONDS)
    run.add(f"{len(names)} pairs converge", time.monotonic() - began, "s")
    time.sleep(SETTLE_SECONDS)  # what is still under way belongs to it
    answers = run.cluster.requests() - before
    asked: Counter[str] = Counter()
    for (verb, _), count in answers.items():
        if verb not in READS or verb == "GET":
            asked[verb] += count
    own = asked.total() - run.load.sent
    refused = sum(n for (_, code), n in answers.items() if code[0] in "45")
    waits = run.load.latencies(names)
    run.add("latency, median", statistics.median(waits), "s")
    sent = ", ".join(f"{verb} {count}" for verb, count in sorted(asked.items()))
    note = f"{own} requests; with the load's {run.load.sent}: {sent}"
    run.add("requests an object", own / (len(names) + clusters), "", REQUESTS_LIMIT, note)
    run.add("requests that the API server refused", refused)
    run.add("CPU", run.manager.process.usage().cpu_seconds - used, "s")


def _pool(run: Run, replicas: int) -> None:
    run.cluster.client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bootstrap", "namespace": NAMESPACE},
            "stringData": {"value": "#cloud-config\n"},
        }
    )
    used, began = run.manager.process.usage().cpu_seconds, time.monotonic()
    run.pool.start(replicas)
    eventually(lambda: run.pool.is_settled(replicas), timeout=TIMEOUT_SECONDS, what="the pool")
    run.add(f"pool of {replicas} converges", time.monotonic() - began, "s")
    run.add("CPU, pool", run.manager.process.usage().cpu_seconds - used, "s")
    run.pool.rest()


def _restart(run: Run, names: list[str]) -> None:
    """One new pair is made while the manager is stopped; until it is served."""
    run.manager.process.stop()
    run.load.make(["new-after-restart"])
    run.load.release(["new-after-restart"])
    began = time.monotonic()
    run.manager.launch()
    run.load.wait(["new-after-restart"], TIMEOUT_SECONDS)
    took = time.monotonic() - began
    run.add(f"new machine after a restart with {len(names)}", took, "s", RESTART_LIMIT_SECONDS)
    run.add("CPU until then", run.manager.process.usage().cpu_seconds, "s")
    time.sleep(SETTLE_SECONDS)


def _storm(run: Run, names: list[str]) -> None:
    """Change a label of the Cluster, on which all machines depend, again and again."""
    before, sent = run.cluster.requests(), run.load.sent
    used = run.manager.process.usage().cpu_seconds
    for number in range(STORM_CHANGES):
        labels = {"example.com/storm": str(number)}
        run.cluster.client.patch(run.load.owner, {"metadata": {"labels": labels}})
        time.sleep(STORM_SECONDS)
        if number == STORM_CHANGES // 2:
            run.load.make(["new-in-storm"])
            began = time.monotonic()
            run.load.release(["new-in-storm"])
    run.load.wait(["new-in-storm"], TIMEOUT_SECONDS)
    served = run.load.latencies(["new-in-storm"])[0]
    run.add("new machine in a storm of labels", served, "s", RESTART_LIMIT_SECONDS)
    _wait_idle(run)
    run.add(f"until {STORM_CHANGES} labels no longer have an effect", time.monotonic() - began, "s")
    run.add("CPU, storm", run.manager.process.usage().cpu_seconds - used, "s")
    answers = run.cluster.requests() - before
    writes = sum(n for (verb, _), n in answers.items() if verb not in READS)
    own = writes - (run.load.sent - sent) - STORM_CHANGES - 3
    run.add("writes, storm", own, "", 0.0)


def _delete(run: Run, names: list[str]) -> None:
    everything = [*names, "new-after-restart", "new-in-storm"]
    used, began = run.manager.process.usage().cpu_seconds, time.monotonic()
    run.pool.delete()
    run.load.delete(everything)
    eventually(
        lambda: run.load.gone.issuperset(everything), timeout=TIMEOUT_SECONDS, what="deletion"
    )
    eventually(run.pool.is_gone, timeout=TIMEOUT_SECONDS, what="deletion of the pool", interval=1)
    run.add("deletion of all", time.monotonic() - began, "s")
    run.add("CPU, deletion", run.manager.process.usage().cpu_seconds - used, "s")
    left = len(list((run.manager.cloud / "servers").glob("*.json")))
    run.add("servers left", left, "", 0.0)
    lines = (run.manager.cloud / "journal.log").read_text(encoding="utf-8").splitlines()
    created = [line for line in lines if line.startswith("create server ")]
    run.add("servers created twice", len(created) - len(set(created)), "", 0.0)


def _wait_idle(run: Run) -> None:
    """Until the manager has used next to no processor time for a second."""
    used = run.manager.process.usage().cpu_seconds
    while True:
        time.sleep(1.0)
        now = run.manager.process.usage().cpu_seconds
        if now - used < 0.05:
            return
        used = now


def _longest_blocks(blocks: list[tuple[str, Block]]) -> list[Figure]:
    """The longest block of the event loop in each phase, in processor time of its thread.

    Elapsed time, which the note has, includes waits for a processor of a busy machine.
    """
    found = []
    for phase in dict.fromkeys(phase for phase, _ in blocks):
        those = [block for name, block in blocks if name == phase]
        longest = max(those, key=lambda block: block.processor)
        elapsed = 1000 * max(block.seconds for block in those)
        collector = f"garbage collector {1000 * longest.collector:.0f} ms"
        note = f"{longest.what}; {collector}; longest elapsed time {elapsed:.0f} ms"
        name = f"longest block of the event loop, {phase}"
        found.append(Figure(name, 1000 * longest.processor, "ms", BLOCK_LIMIT_MS, note))
    return found


def main(pairs: int, replicas: int, clusters: int, output: str) -> int:
    """Measure and print; return 1 if a limit is exceeded."""
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(pairs, replicas, clusters, Path(folder))
    title = f"{pairs} pairs in {clusters} clusters, a pool of {replicas}"
    return print_figures(figures, output, title)
