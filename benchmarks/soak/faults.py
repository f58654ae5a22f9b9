"""Hostile days: faults at random moments; nothing is lost, leaked or created twice."""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from random import Random

from benchmarks.cluster import NAMESPACE, Cluster, cluster
from benchmarks.soak.hostile import EVENTS
from benchmarks.soak.invariants import Harm, Invariants
from benchmarks.soak.report import Figure, print_figures
from benchmarks.soak.site import Site

EVENTS_TO_SETTLE = 6
SYNC_SECONDS = 20
BURST_SHARE = 0.3
"""Share of events that follow the one before at once, while that still has its effect."""
KILLS_PER_MINUTE = 1.8
KILL = "manager killed"


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
            self.invariants.not_settled()
            self.invariants.violated(Harm.OTHER, str(error))
        return self._figures()

    def _happen(self, name: str) -> None:
        _say(name)
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
        self._site.wait(self.invariants.settled, "settled")
        self._settled.append(time.monotonic() - began)
        self.invariants.check()
        _say(f"settled, {self._site.kills} kills, {self._site.created} machines")

    def _delete_all(self) -> None:
        site, c = self._site, self._site.cluster
        site.delete(set(site.live))
        site.wait(self.invariants.settled, "all are deleted")
        kind = ("AcmeCluster", "benchmark", NAMESPACE)
        c.client.delete(c.client.get(f"{c.group}/{c.version}", *kind))
        site.wait(
            lambda: c.client.find(f"{c.group}/{c.version}", *kind) is None, "the cluster is deleted"
        )
        self.invariants.check_end()

    def _figures(self) -> list[Figure]:
        site = self._site
        verbs = Counter(each.rpartition(" ")[0] for each in site.journal())
        figures = [Figure(name, self._happened[name]) for name in EVENTS]
        figures += [
            Figure("kills of managers in all", site.kills),
            Figure("machines created", site.created),
            Figure("machines deleted", site.created - len(site.live) - len(site.leaving)),
            Figure("servers created", verbs["create server"]),
            Figure("servers deleted", verbs["delete server"]),
            Figure("longest time to settle", max(self._settled, default=0.0), "s"),
        ]
        for harm in Harm:
            found = [each.what for each in self.invariants.violations if each.harm is harm]
            figures.append(Figure(harm, len(found), "", 0.0, "; ".join(found)[:2000]))
        return figures


def each_once(rng: Random) -> list[str]:
    """Return all events, in random order as far as they have no place."""
    names = sorted(EVENTS)
    rng.shuffle(names)
    return sorted(names, key=lambda name: EVENTS[name].order)


def at_random(site: Site, minutes: float) -> Iterator[str]:
    """Each event, then random ones until the time is over, with enough kills."""
    began = time.monotonic()
    names, weights = list(EVENTS), [each.weight for each in EVENTS.values()]
    pending = each_once(site.rng)
    while (passed := (time.monotonic() - began) / 60.0) < minutes:
        if site.kills < KILLS_PER_MINUTE * passed:
            yield KILL
        elif pending:
            yield pending.pop(0)
        else:
            yield from site.rng.choices(names, weights)


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
    site = Site(api, folder, Random(seed), sync_seconds=sync_seconds, pace=pace)
    try:
        site.start()
        return Soak(site).run(iter(events) if events else at_random(site, minutes))
    finally:
        site.stop()


def main(minutes: float, seed: int, output: str, folder: Path | None = None) -> int:
    """Run and print; return 1 if an invariant is violated.

    Logs and the cloud's journal stay in ``folder``, if one is given.
    """
    kept = nullcontext(str(folder)) if folder else tempfile.TemporaryDirectory()
    with kept as name, cluster(Path(name)) as api:
        figures = soak(api, Path(name), seed, minutes=minutes)
    return print_figures(figures, output, f"faults for {minutes:g} minutes, seed {seed}")


def _say(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")
