"""A whole operator as a process: crashes, quiet times, takeovers, and what each costs."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from capsmith.clusters.processes.wait import eventually, steadily
from tests.runtime.operator_main import FINALIZER, LOST
from tests.runtime.support.faults import Loss, Request, failure
from tests.runtime.support.operator import Site
from tests.runtime.support.proxy import FaultProxy

LEASES = "coordination.k8s.io/v1"
# The leader keeps the lease on a busy machine too, and is replaced soon after it is killed.
SHORT = "--lease=8/6/0.2"


def fill(site: Site, count: int, prefix: str = "w") -> None:
    with ThreadPoolExecutor(4) as pool:
        names = [f"{prefix}-{number}" for number in range(count)]
        list(pool.map(lambda name: site.api.create(site.namespace, name), names))


def widget_writes(proxy: FaultProxy) -> list[Request]:
    return [request for request in proxy.requests if request.write and "/widgets/" in request.path]


def lease_write(request: Request) -> bool:
    return request.write and "/leases/" in request.path


def steal(site: Site) -> None:
    lease = site.api.client.get(LEASES, "Lease", "widget-operator", site.namespace)
    site.api.client.patch(lease, {"spec": {"holderIdentity": "thief"}})


def test_killed_in_the_middle_of_two_hundred(site: Site, proxy: FaultProxy) -> None:
    """The next one finds everything as it is and does only what is left to do."""
    fill(site, 200)
    first = site.operator("first", SHORT)
    stuck = proxy.inject(Loss.SILENCE, lambda _: len(widget_writes(proxy)) > 250)
    first.start()
    eventually(lambda: stuck.hits > 0, timeout=120)
    first.kill()
    proxy.heal(stuck)
    before = len(site.provisioned())
    assert 0 < before < 200
    site.operator("second", SHORT).start()
    site.converged(200)
    widgets = site.api.widgets(site.namespace)
    assert {each["metadata"]["uid"]: 1 for each in widgets} == site.done("create")
    assert all(each["metadata"]["finalizers"] == [FINALIZER] for each in widgets)
    assert all(each["metadata"]["generation"] == 2 for each in widgets)
    # Three requests an object; what was under way in ten workers may have been repeated.
    assert 600 <= len(widget_writes(proxy)) <= 600 + 10
    repeated = Counter((each.path, each.body) for each in widget_writes(proxy))
    assert len([count for count in repeated.values() if count > 1]) <= 10


def test_every_deletion_is_handled_once(site: Site, proxy: FaultProxy) -> None:
    site.operator("first", SHORT).start()
    fill(site, 20)
    site.converged(20)
    proxy.requests.clear()
    for number in range(20):
        site.api.delete(site.namespace, f"w-{number}")
    eventually(lambda: not site.api.widgets(site.namespace), timeout=120)
    assert len(widget_writes(proxy)) == 20
    assert set(site.done("delete").values()) == {1}


def test_idle_is_idle(site: Site, proxy: FaultProxy) -> None:
    """Watches and lease renewals are all that reaches the server, through a quiet time too."""
    operator = site.operator("first", "--lease=60/50/1", "--watch=4", "--silence=8")
    operator.start()
    fill(site, 10)
    site.converged(10)
    quiet_since, used = time.monotonic(), operator.usage().cpu_seconds
    # Longer than a watch lasts: it resumes at the last bookmark.
    steadily(lambda: operator.check(), seconds=9)
    requests, lasted = proxy.since(quiet_since + 0.5), time.monotonic() - quiet_since - 0.5
    others = [str(each) for each in requests if not each.watch and not lease_write(each)]
    assert others == []
    assert lasted / 2 <= sum(map(lease_write, requests)) <= lasted + 2
    watches = [each for each in requests if each.watch]
    assert 1 <= len(watches) <= lasted / 4 + 1
    assert operator.usage().cpu_seconds - used < 1
    site.api.create(site.namespace, "late")
    site.converged(11)


def test_a_clean_stop_hands_over_at_once(site: Site) -> None:
    first, second = (site.operator(name, "--lease=120/100/2") for name in ("first", "second"))
    first.start()
    eventually(first.leads, timeout=60)
    second.start()
    assert not second.leads()
    first.stop()
    eventually(second.leads, timeout=60, what="sooner than the lease runs out")
    assert first.wait_exited() == 0
    fill(site, 3)
    site.converged(3)
    assert {identity for *_, identity in site.journal()} == {"second"}


def test_a_killed_leader_is_followed_after_the_lease(site: Site) -> None:
    first, second = (site.operator(name, "--lease=8/6/0.5") for name in ("first", "second"))
    first.start()
    eventually(first.leads, timeout=60)
    second.start()
    fill(site, 5)
    site.converged(5)
    first.kill()
    began = time.monotonic()
    fill(site, 5, "late")
    eventually(second.leads, timeout=60, interval=0.05)
    assert time.monotonic() - began >= 2.0, "the last renewal was no longer ago than the deadline"
    site.converged(10)
    assert [identity for *_, identity in site.journal()] == ["first"] * 5 + ["second"] * 5


def test_a_manager_that_has_lost_the_lease_stops(site: Site) -> None:
    """Another process may lead: no reconcile starts, and the process ends."""
    first = site.operator("first", SHORT)
    first.start()
    fill(site, 3)
    site.converged(3)
    steal(site)
    assert first.wait_exited() == LOST
    site.api.create(site.namespace, "late")
    steadily(lambda: _only(site, 3), seconds=0.5)
    lease = site.api.client.get(LEASES, "Lease", "widget-operator", site.namespace)
    assert lease["spec"]["holderIdentity"] == "thief"


def test_a_leader_that_cannot_renew_stops_before_another_leads(
    site: Site, proxy: FaultProxy
) -> None:
    first = site.operator("first", "--lease=60/5/0.2")
    first.start()
    eventually(first.leads, timeout=60)
    proxy.inject(Loss.SILENCE, lease_write)
    began = time.monotonic()
    assert first.wait_exited() == LOST
    assert time.monotonic() - began < 60 - 5


@pytest.mark.parametrize("status", [429, 500, 409])
def test_storms_are_outlasted(site: Site, proxy: FaultProxy, status: int) -> None:
    """Shorter than the renew deadline: still leading, everything done, nothing twice."""
    operator = site.operator("first", "--lease=120/100/0.5")
    operator.start()
    eventually(operator.leads, timeout=60)
    headers = {"Retry_After": "1"} if status == 429 else {}
    storm = proxy.inject(failure(status, "Storm", **headers), lambda request: True)
    fill(site, 20)
    proxy.drop()
    steadily(lambda: operator.check(), seconds=2)
    proxy.heal(storm)
    site.converged(20)
    assert operator.leads()
    assert set(site.done("create").values()) == {1}
    assert 3 <= storm.hits <= 300


def test_a_server_restart_is_outlasted(site: Site) -> None:
    """The process neither ends nor forgets."""
    operator = site.operator("first", "--lease=300/240/1")
    operator.start()
    fill(site, 5)
    site.converged(5)
    site.api.crash()
    site.api.wait_ready()
    fill(site, 5, "late")
    site.converged(10)
    assert operator.leads()
    assert set(site.done("create").values()) == {1}


def _only(site: Site, count: int) -> None:
    assert len(site.provisioned()) == count
    assert len(site.done("create")) == count
