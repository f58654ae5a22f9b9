"""Hostile days: faults at random moments; nothing is lost, leaked or created twice."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

from benchmarks.cluster import NAMESPACE, Cluster, cluster
from benchmarks.soak.hostile import EVENTS
from benchmarks.soak.invariants import Invariants
from benchmarks.soak.report import Figure, print_figures
from benchmarks.soak.site import Site
from tests.e2e.harness.wait import eventually

SETTLE_SECONDS = 300.0
EVENTS_TO_SETTLE = 6
SYNC_SECONDS = 20
BURST_SHARE = 0.3
"""Share of events that follow the one before at once, while that still has its effect."""


class Soak:
    """One run; its figures."""

    def __init__(self, site: Site) -> None:
        self.invariants = Invariants(site)
        self._site = site
        self._happened: Counter[str] = Counter()
        self._settled: list[float] = []

    def run(self, events: Iterator[str]) -> list[Figure]:
        """Let all events happen, delete everything and return the figures."""
        try:
            for number, name in enumerate(events):
                self._happen(name)
                if number % EVENTS_TO_SETTLE == EVENTS_TO_SETTLE - 1:
                    self._settle()
            self._settle()
            self._delete_all()
        except TimeoutError as error:
            self.invariants.violations.append(str(error))
        return self._figures()

    def _happen(self, name: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {name}\n")
        site = self._site
        if site.rng.random() >= BURST_SHARE:
            site.ensure()
        site.churn()
        EVENTS[name].run(site)
        self._happened[name] += 1
        self.invariants.check()

    def _settle(self) -> None:
        """End all faults; everything must then reach its final state."""
        self._site.heal()
        began = time.monotonic()
        eventually(self.invariants.settled, timeout=SETTLE_SECONDS, what="settled", interval=0.5)
        self._settled.append(time.monotonic() - began)
        self.invariants.check()

    def _delete_all(self) -> None:
        site, c = self._site, self._site.cluster
        site.delete(set(site.live))
        eventually(self.invariants.settled, timeout=SETTLE_SECONDS, what="all are deleted")
        kind = ("AcmeCluster", "benchmark", NAMESPACE)
        c.client.delete(c.client.get(f"{c.group}/{c.version}", *kind))
        eventually(
            lambda: c.client.find(f"{c.group}/{c.version}", *kind) is None,
            timeout=SETTLE_SECONDS,
            what="the cluster is deleted",
        )
        for name in ("servers", "clusters"):
            left = [path.name for path in (site.cloud / name).glob("*.json")]
            self.invariants.violations += [f"{name}: {path} is leaked" for path in left]

    def _figures(self) -> list[Figure]:
        created = [line for line in self._site.journal() if line.startswith("create server")]
        found = [Figure(name, self._happened[name]) for name in EVENTS if self._happened[name]]
        found.append(Figure("servers created", len(created)))
        found.append(Figure("longest time to settle", max(self._settled, default=0.0), "s"))
        broken = self.invariants.violations
        found.append(Figure("violations", len(broken), "", 0.0, "; ".join(broken)[:2000]))
        return found


def at_random(rng: Random, minutes: float) -> Iterator[str]:
    """Events until the time is over."""
    end = time.monotonic() + 60.0 * minutes
    names, weights = list(EVENTS), [each.weight for each in EVENTS.values()]
    while time.monotonic() < end:
        yield from rng.choices(names, weights)


def soak(
    api: Cluster,
    folder: Path,
    seed: int,
    *,
    events: Sequence[str] = (),
    minutes: float = 0.0,
    sync_seconds: int = SYNC_SECONDS,
    pace: float = 1.0,
) -> list[Figure]:
    """Let these events happen, or random ones for so many minutes."""
    rng = Random(seed)
    site = Site(api, folder, rng, sync_seconds=sync_seconds, pace=pace)
    try:
        site.start()
        return Soak(site).run(iter(events) if events else at_random(rng, minutes))
    finally:
        site.stop()


def main(minutes: float, seed: int, output: str) -> int:
    """Run and print; return 1 if an invariant is violated."""
    with tempfile.TemporaryDirectory() as name, cluster(Path(name)) as api:
        figures = soak(api, Path(name), seed, minutes=minutes)
    return print_figures(figures, output, f"faults for {minutes:g} minutes, seed {seed}")
