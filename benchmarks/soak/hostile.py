"""What happens to a site, one thing at a time."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from benchmarks.soak.site import Site
from capsmith_runtime.testing.faults import Faults
from tests.e2e.harness.wait import eventually
from tests.runtime.support.faults import Fault, Loss, Request, failure

_DAY = 86_400.0


@dataclass(frozen=True)
class Event:
    """Something that happens while machines are created and deleted."""

    run: Callable[[Site], None]
    weight: int = 2
    """How often it happens, compared with others."""


def kill_leader(site: Site) -> None:
    """Kill the manager that leads at a random moment; it is started again."""
    site.pause(0.0, 1.5)
    leader = site.leader()
    leader.process.kill()
    leader.launch()


def kill_both(site: Site) -> None:
    site.pause(0.0, 1.5)
    for manager in site.managers:
        manager.process.kill()
        manager.launch()


def freeze_leader(site: Site) -> None:
    """Stop the leader with calls in flight until another one leads, and let it continue."""
    site.simulate(Faults(slow=3.0))
    site.churn()
    site.pause(0.2, 1.0)
    leader = site.leader()
    (other,) = (each for each in site.managers if each is not leader)
    leader.send(signal.SIGSTOP)
    eventually(lambda: other.leads, what=f"{other.name} leads")
    site.pause(0.0, 1.0)
    leader.send(signal.SIGCONT)
    eventually(lambda: not leader.leads, what=f"{leader.name} no longer leads")


def restart_api_server(site: Site) -> None:
    site.cluster.server.process.kill()
    site.pause(0.0, 3.0)
    site.cluster.server.start()


def stop_etcd(site: Site) -> None:
    site.cluster.etcd.process.send(signal.SIGSTOP)
    site.pause(1.0, 6.0)
    site.cluster.etcd.process.send(signal.SIGCONT)


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
    """Delete the server of a provisioned machine behind the back of the managers."""
    machines, servers = site.machines(), site.servers()
    ready = [
        name
        for name in sorted(site.live - site.vanished)
        if machines[name].get("status", {}).get("initialization", {}).get("provisioned")
    ]
    if ready:
        name = site.rng.choice(ready)
        site.vanished.add(name)
        servers[name].unlink()


def answers(fault: Fault, share: float, applies: Callable[[Request], bool]) -> Event:
    """A share of the requests gets this answer for some seconds."""

    def run(site: Site) -> None:
        # The proxy has a thread of its own.
        chance = Random(site.rng.random())
        site.proxy.inject(fault, lambda request: applies(request) and chance.random() < share)
        site.pause(2.0, 6.0)
        site.proxy.calm()

    return Event(run)


def cloud(faults: Faults, seconds: float = 5.0) -> Event:
    """Calls of the cloud fail for some seconds."""

    def run(site: Site) -> None:
        site.simulate(faults)
        site.churn()
        site.pause(0.2 * seconds, seconds)
        site.simulate(Faults())

    return Event(run)


EVENTS: dict[str, Event] = {
    "manager killed": Event(kill_leader, weight=12),
    "both managers killed": Event(kill_both),
    "leader frozen": Event(freeze_leader),
    "API server restarted": Event(restart_api_server),
    "429 storm": answers(failure(429, "TooManyRequests", Retry_After="1"), 0.6, lambda _: True),
    "500 storm": answers(failure(500, "InternalError"), 0.6, lambda _: True),
    "replies lost": answers(Loss.UNANSWERED, 0.4, lambda request: request.write),
    "connections cut": Event(cut_connections),
    "connections half open": Event(hold_connections, weight=1),
    "etcd stopped": Event(stop_etcd),
    "clock jump": Event(jump_clock),
    "server vanished": Event(vanish),
    "cloud hangs": cloud(Faults(hang=0.4), 12.0),
    "cloud fails": cloud(Faults(error=1.0), 60.0),
    "cloud loses replies": cloud(Faults(lost=0.5)),
    "cloud refuses": cloud(Faults(limit=0.5)),
    "cloud is slow": cloud(Faults(slow=4.0)),
    "cloud lists late": cloud(Faults(late=4)),
}
"""By name."""
