"""``python -m benchmarks.runtime``: the generated controller beside one on Kopf.

Both do the same work against a real API server, one after the other; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cluster import ROOT, Cluster, cluster
from benchmarks.load import Load
from benchmarks.timing import table
from capsmith.clusters.processes.process import Process, free_port, probe_http
from tests.repositories import import_path

IDLE_SECONDS = 30.0
SETTLE_SECONDS = 5.0
TIMEOUT_SECONDS = 900.0
READS = ("GET", "LIST", "WATCH", "WATCHLIST")


@dataclass(frozen=True)
class Contender:
    name: str
    process: Process
    ready: Callable[[], object]
    cloud: Path | None
    """The folder of the simulated cloud; None if the servers are in memory."""


def generated(cluster: Cluster, folder: Path) -> Contender:
    port, cloud = free_port(), folder / "cloud"
    command = [sys.executable, "-m", cluster.package, "--namespace=", "--concurrency=10"]
    process = Process(
        "generated",
        [*command, f"--diagnostics-address=127.0.0.1:{port}"],
        folder / "generated.log",
        {
            **os.environ,
            "PYTHONPATH": import_path(cluster.repository),
            "KUBECONFIG": str(cluster.kubeconfig),
            "CAPSMITH_SIMULATED_CLOUD_DIR": str(cloud),
        },
    )
    return Contender("generated", process, probe_http(f"http://127.0.0.1:{port}/readyz"), cloud)


def kopf(cluster: Cluster, folder: Path) -> Contender:
    port, cloud = free_port(), folder / "cloud"
    address = f"http://127.0.0.1:{port}/healthz"
    command = [sys.executable, "-m", "kopf", "run", "--standalone", "--all-namespaces", "--quiet"]
    process = Process(
        "kopf",
        [*command, f"--liveness={address}", str(ROOT / "benchmarks" / "kopf_controller.py")],
        folder / "kopf.log",
        {
            **os.environ,
            "KUBECONFIG": str(cluster.server.kubeconfig),
            "BENCHMARK_RESOURCE": "/".join(
                (cluster.group, cluster.version, cluster.infrastructure.machines)
            ),
            "BENCHMARK_CLOUD": str(cluster.repository / "src" / cluster.package / "cloud.py"),
            "CAPSMITH_SIMULATED_CLOUD_DIR": str(cloud),
        },
    )
    return Contender("Kopf", process, probe_http(address), cloud)


def measure(cluster: Cluster, contender: Contender, count: int) -> dict[str, str]:
    """All phases of one controller; the rows of its column."""
    load, process = Load(cluster), contender.process
    names = [f"machine-{number}" for number in range(count)]
    process.start()
    process.wait_ready(contender.ready)
    load.start()
    try:
        rows = _converge(cluster, load, process, names)
        rows |= _idle(cluster, process)
        rows |= _restart(load, contender, count)
        rows |= _kill(load, contender, count)
        rows |= _delete(load, process, names)
        return rows | {"servers made twice": _made_twice(contender.cloud)}
    finally:
        load.stop()
        process.stop()


def _converge(cluster: Cluster, load: Load, process: Process, names: list[str]) -> dict[str, str]:
    before, sent, used = cluster.requests(), load.sent, process.usage().cpu_seconds
    load.make(names)
    time.sleep(SETTLE_SECONDS)  # all of them are seen, and wait
    began = time.monotonic()
    load.release(names)
    released = time.monotonic() - began
    load.wait(names, TIMEOUT_SECONDS)
    took = time.monotonic() - began
    time.sleep(SETTLE_SECONDS)  # what is still under way belongs to it
    answers = cluster.requests() - before
    writes = _writes(answers) - (load.sent - sent)
    gets = sum(n for (verb, _), n in answers.items() if verb == "GET")
    codes = Counter({code: n for (_, code), n in answers.items() if code[0] in "45"})
    waits = load.latencies(names)
    half, most = statistics.median(waits), waits[len(waits) * 95 // 100]
    usage = process.usage()
    return {
        "owner references set, s": f"{released:.1f}",
        "all converged, s": f"{took:.1f}",
        "latency p50 / p95, s": f"{half:.1f} / {most:.1f}",
        "requests an object": f"{(writes + gets) / len(names):.2f}",
        "refused by the API server": ", ".join(f"{c}: {n}" for c, n in sorted(codes.items()))
        or "0",
        "CPU, s": f"{usage.cpu_seconds - used:.1f}",
        "peak RSS, MiB": f"{usage.peak_rss_mib:.0f}",
    }


def _writes(answers: Counter[tuple[str, str]]) -> int:
    return sum(n for (verb, _), n in answers.items() if verb not in READS)


def _idle(cluster: Cluster, process: Process) -> dict[str, str]:
    before, used = cluster.requests(), process.usage().cpu_seconds
    time.sleep(IDLE_SECONDS)
    answers = cluster.requests() - before
    asked = _writes(answers) + sum(n for (verb, _), n in answers.items() if verb == "GET")
    took = process.usage().cpu_seconds - used
    return {f"idle {IDLE_SECONDS:.0f} s: CPU, s / requests": f"{took:.2f} / {asked}"}


def _restart(load: Load, contender: Contender, count: int) -> dict[str, str]:
    """A clean stop, ten new pairs meanwhile, a start: until the new ones are there."""
    contender.process.stop()
    names = [f"late-{number}" for number in range(10)]
    load.make(names)
    load.release(names)
    began = time.monotonic()
    contender.process.start()
    load.wait(names, TIMEOUT_SECONDS)
    return {f"restart with {count}, s": f"{time.monotonic() - began:.1f}"}


def _kill(load: Load, contender: Contender, count: int) -> dict[str, str]:
    """SIGKILL while half of a second load is done; from the new start until all of it is."""
    names = [f"second-{number}" for number in range(count * 6 // 10)]
    load.make(names)
    time.sleep(SETTLE_SECONDS)
    releasing = threading.Thread(target=load.release, args=[names])
    releasing.start()
    while load.converged(names) < len(names) // 2:
        time.sleep(0.01)
    contender.process.kill()
    began = time.monotonic()
    contender.process.start()
    load.wait(names, TIMEOUT_SECONDS)
    releasing.join()
    return {f"kill -9 within {len(names)} more, s": f"{time.monotonic() - began:.1f}"}


def _delete(load: Load, process: Process, names: list[str]) -> dict[str, str]:
    """All pairs of the first load; until their infrastructure machines are gone."""
    used, began = process.usage().cpu_seconds, time.monotonic()
    load.delete(names)
    load.wait_gone(names, TIMEOUT_SECONDS)
    took = time.monotonic() - began
    cpu = process.usage().cpu_seconds - used
    return {f"deletion of {len(names)}, s / CPU, s": f"{took:.1f} / {cpu:.1f}"}


def _made_twice(cloud: Path | None) -> str:
    if cloud is None:
        return "not recorded"
    lines = (cloud / "journal.log").read_text(encoding="utf-8").splitlines()
    made = Counter(line for line in lines if line.startswith("create server "))
    return str(sum(1 for times in made.values() if times > 1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, action="append", help="1000 and 3000 unless given")
    options = parser.parse_args()
    for count in options.objects or (1000, 3000):
        columns = {}
        for make in (generated, kopf):
            # An API server of its own for each, so that neither finds traces of the other.
            with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as api:
                contender = make(api, Path(name))
                columns[contender.name] = measure(api, contender, count)
        print_columns(count, columns)
    return 0


def print_columns(count: int, columns: dict[str, dict[str, str]]) -> None:
    """Print a table with a column for each contender."""
    rows = [[f"{count:,} pairs", *columns]]
    keys = next(iter(columns.values()))
    rows += [[key, *(column[key] for column in columns.values())] for key in keys]
    table(rows)


if __name__ == "__main__":
    sys.exit(main())
