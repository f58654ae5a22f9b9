"""What happens to a site, one thing at a time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from benchmarks.soak.site import Site
from capsmith_runtime.testing.faults import Faults
from tests.runtime.support.faults import Fault, Loss, Request, failure

_DAY = 86_400.0
_ETCD_RUNS_SECONDS = 0.1
KILL_SHARE = 0.3
"""Share of the faults of the cloud during which the leader is killed."""


@dataclass(frozen=True)
class Event:
    """Something that happens while machines are created and deleted."""

    run: Callable[[Site], None]
    weight: int = 2
    """How often it happens, compared with others."""
    order: int = 0
    """Place in a short run: managers that are killed need not notice a half-open connection."""


def kill_leader(site: Site) -> None:
    """Kill the manager that leads at a random moment; it is started again."""
    site.pause(0.0, 1.5)
    site.kill(site.leader())


def kill_both(site: Site) -> None:
    site.pause(0.0, 1.5)
    for manager in site.managers:
        site.kill(manager)


def freeze_leader(site: Site) -> None:
    """Stop the leader with calls in flight until another one leads, and let it continue.

    Meanwhile the other one deletes a machine whose server the first is about to create.
    """
    site.ensure()
    leader = site.leader()
    (other,) = (each for each in site.managers if each is not leader)
    site.wait(lambda: other.is_alive, f"{other.name} is alive")
    site.simulate(Faults(slow=3.0))
    doomed = site.churn()[0]
    # The finalizer is written just before the hook is called.
    site.wait(lambda: site.has_finalizer(doomed), f"{doomed} has a finalizer")
    site.pause(0.0, 1.0)
    leader.send(signal.SIGSTOP)
    site.delete({doomed})
    site.wait(lambda: other.leads, f"{other.name} leads")
    site.simulate(Faults())
    site.wait(lambda: doomed not in site.machines(), f"{doomed} is deleted")
    leader.send(signal.SIGCONT)
    site.wait(lambda: not leader.leads, f"{leader.name} no longer leads")


def restart_api_server(site: Site) -> None:
    site.cluster.server.process.kill()
    site.pause(0.0, 3.0)
    site.cluster.server.start()


def stop_etcd(site: Site) -> None:
    site.cluster.etcd.process.send(signal.SIGSTOP)
    site.pause(1.0, 6.0)
    site.cluster.etcd.process.send(signal.SIGCONT)


def slow_etcd(site: Site) -> None:
    """Let etcd run for a small part of the time."""
    for _ in range(8):
        site.cluster.etcd.process.send(signal.SIGSTOP)
        site.pause(0.1, 0.6)
        site.cluster.etcd.process.send(signal.SIGCONT)
        time.sleep(_ETCD_RUNS_SECONDS)


def jump_clock(site: Site) -> None:
    """Let the wall clock of one manager be wrong from now on."""
    manager = site.rng.choice(site.managers)
    manager.clock.write_text(str(site.rng.choice([-_DAY, -3600.0, -60.0, 60.0, 3600.0, 30 * _DAY])))
    site.pause(1.0, 1.0)


def cut_connections(site: Site) -> None:
    for _ in range(3):
        site.proxy.drop()
        site.pause(0.1, 1.0)


def hold_connections(site: Site) -> None:
    """Make all connections half open."""
    site.proxy.freeze()
    site.pause(0.5, 2.0)


def vanish(site: Site) -> None:
    """Delete the server of a provisioned machine without the managers."""
    site.wait(site.provisioned, "a machine is provisioned")
    name = site.rng.choice(site.provisioned())
    site.vanished.add(name)
    site.servers()[name].unlink()


def answers(fault: Fault, share: float, applies: Callable[[Request], bool]) -> Event:
    """A share of the requests gets this answer for some seconds."""

    def run(site: Site) -> None:
        # The proxy has a thread of its own.
        chance = Random(site.rng.random())
        site.proxy.inject(fault, lambda request: applies(request) and chance.random() < share)
        site.pause(2.0, 6.0)
        site.proxy.calm()

    return Event(run)


def cloud(faults: Faults, least: float = 1.0, most: float = 5.0, weight: int = 2) -> Event:
    """Calls of the cloud fail for some seconds, in which the manager may be killed too."""

    def run(site: Site) -> None:
        site.simulate(faults)
        site.churn()
        site.pause(least / 2, most / 2)
        if site.rng.random() < KILL_SHARE:
            site.kill(site.leader())
        site.pause(least / 2, most / 2)
        site.simulate(Faults())

    return Event(run, weight)


EVENTS: dict[str, Event] = {
    "manager killed": Event(kill_leader, weight=12),
    "both managers killed": Event(kill_both, order=2),
    "leader frozen": Event(freeze_leader),
    "API server restarted": Event(restart_api_server),
    "429 storm": answers(failure(429, "TooManyRequests", Retry_After="1"), 0.6, lambda _: True),
    "500 storm": answers(failure(500, "InternalError"), 0.6, lambda _: True),
    "replies lost": answers(Loss.UNANSWERED, 0.4, lambda request: request.write),
    "connections cut": Event(cut_connections),
    "connections half open": Event(hold_connections, weight=1, order=1),
    "etcd stopped": Event(stop_etcd),
    "etcd slow": Event(slow_etcd),
    "clock jump": Event(jump_clock),
    "server vanished": Event(vanish),
    "cloud hangs": cloud(Faults(hang=0.4), 2.0, 12.0),
    "cloud fails": cloud(Faults(error=0.5)),
    "cloud fails for minutes": cloud(Faults(error=1.0), 60.0, 180.0, weight=1),
    "cloud loses replies": cloud(Faults(lost=0.5)),
    "cloud refuses": cloud(Faults(limit=0.5)),
    "cloud is slow": cloud(Faults(slow=4.0)),
    "cloud lists late": cloud(Faults(late=4)),
}
"""By name."""
