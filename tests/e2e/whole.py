"""Clusters whose every provider comes from one generated repository."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.wait import NotYet, eventually, settled
from tests.e2e.fakes.booting import BootingCluster
from tests.e2e.harness.cloud import Event
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.releases import NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import (
    Scenario,
    build_health_check,
    condition,
    one_scenario,
    wait_nothing_left,
)
from tests.e2e.stack import Combination, Site, Stack

CONTROL_PLANE = "cluster.x-k8s.io/control-plane"
_QUIET_SECONDS = 3.0
WHOLE_SECONDS = 300.0
"""Members of a control plane come and go one after another."""


def _combination(series: str, contract: ContractVersion) -> Combination:
    return Combination(series, contract, "complete", f"whole-{series}-{contract}")


WHOLE_NEWEST = _combination(NEWEST, "v1beta2")
WHOLE_OLDEST = _combination(OLDEST, "v1beta1")
WHOLE_PREVIOUS = tuple(_combination(series, "v1beta2") for series in PREVIOUS)


class WholeStack:
    """A stack without helper providers: each cluster boots its own API server at one address."""

    def __init__(self, base: Base, combination: Combination, report: Report) -> None:
        self.combination = combination
        self._base = base
        self._port = free_port()
        folder = base.folder / str(combination)
        with report.phase(str(combination), "build the provider"):
            provider = build_provider(combination.example, combination.contract, folder)
        endpoint = {"CAPSMITH_SIMULATED_ENDPOINT": f"127.0.0.1:{self._port}"}
        self.stack = Stack(base, None, combination, provider, report, endpoint)
        with ExitStack() as failed:
            failed.callback(self.stack.stop)
            self.site = self.stack.start()
            failed.pop_all()

    @contextmanager
    def scenario(self, test: str) -> Iterator[Scenario]:
        """Return a context manager with a cluster that boots by itself; clean up at the end."""
        with ExitStack() as ends, one_scenario(self.stack, self.site, test) as made:
            booting = BootingCluster(
                self._base, self.stack.cloud, self._port, made.namespace, made.name
            )
            made.booting = booting
            # A failed test's cluster is deleted before that, for which core wants to reach it.
            ends.callback(booting.stop)
            booting.start(lambda: made.client)
            yield made

    @contextmanager
    def unmade_scenario(self, name: str, namespace: str) -> Iterator[Scenario]:
        """Return a context manager with a cluster that another tool creates, with its namespace."""
        made = Scenario(self.stack, self.site.management, name, namespace)
        booting = BootingCluster(self._base, self.stack.cloud, self._port, namespace, name)
        booting.start(lambda: made.client)
        try:
            yield made
        finally:
            booting.stop()

    def stop(self) -> None:
        """End all processes."""
        self.stack.stop()


def crash(site: Site, within: float) -> None:
    """Kill all managers at a moment of chance, and start them again."""
    delay = random.uniform(0, within)
    print(f"all managers are killed after {delay:.3f} s")
    time.sleep(delay)
    for manager in site.managers.values():
        manager.kill()
    site.start_managers()


def wait_available(scenario: Scenario) -> None:
    """Wait until the Cluster as a whole is available."""
    wanted = "Available" if scenario.core.endswith("v1beta2") else "Ready"

    def available() -> bool:
        found = condition(scenario.cluster(), wanted)
        if found is None or found["status"] != "True":
            raise NotYet(f"{wanted}: {found}")
        return True

    eventually(available, what=f"the cluster {wanted}")


def control_plane(scenario: Scenario) -> JSON:
    """Return the control plane object."""
    reference = scenario.cluster()["spec"]["controlPlaneRef"]
    version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
    return scenario.client.get(version, kind, name, scenario.namespace)


def members(scenario: Scenario) -> list[JSON]:
    """Return the Machines of the control plane."""
    return [each for each in scenario.machines() if CONTROL_PLANE in each["metadata"]["labels"]]


def workers(scenario: Scenario) -> list[JSON]:
    """Return the Machines of the workers."""
    return [each for each in scenario.machines() if CONTROL_PLANE not in each["metadata"]["labels"]]


class Watch:
    """Looks at the machines of a cluster while something else waits."""

    def __init__(self, scenario: Scenario, check: Callable[[list[JSON], list[JSON]], None]) -> None:
        self._scenario = scenario
        self._check = check
        self.looks = itertools.count()

    def until(self, probe: Callable[[], bool], timeout: float, what: str) -> None:
        """Wait for `probe`, and check the members and the workers at each look."""

        def look() -> bool:
            machines = self._scenario.machines()
            inside = [each for each in machines if CONTROL_PLANE in each["metadata"]["labels"]]
            self._check(inside, [each for each in machines if each not in inside])
            next(self.looks)
            return probe()

        eventually(look, timeout=timeout, what=what, interval=0.1)


def delete_and_check(scenario: Scenario) -> None:
    """Delete the Cluster: nothing is left in the API and in the cloud, no lock, no Secret."""
    scenario.delete(timeout=WHOLE_SECONDS)
    scenario.delete_classes()
    wait_nothing_left(scenario)

    def unlocked() -> bool:
        maps = scenario.client.list("v1", "ConfigMap", scenario.namespace)
        left = [each["metadata"]["name"] for each in maps]
        if any(name.startswith(scenario.name) for name in left):
            raise NotYet(f"still there: {left}")
        return True

    eventually(unlocked, what="no lock left")


def health_check(scenario: Scenario) -> JSON:
    """Return the health check that acts on Machines whose annotation requests remediation."""
    unhealthy = {"type": "Ready", "status": "False"}
    checks: JSON = (
        {"checks": {"unhealthyNodeConditions": [{**unhealthy, "timeoutSeconds": 300}]}}
        if scenario.core.endswith("v1beta2")
        else {"unhealthyConditions": [{**unhealthy, "timeout": "300s"}], "maxUnhealthy": "100%"}
    )
    labels = {"cluster.x-k8s.io/cluster-name": scenario.name}
    return build_health_check(scenario, labels, checks)


def check_counters(scenario: Scenario, replicas: int) -> None:
    v1beta2 = ("replicas", "readyReplicas", "availableReplicas", "upToDateReplicas")
    v1beta1 = ("replicas", "readyReplicas", "updatedReplicas")
    counters = v1beta2 if scenario.stack.provider.contract == "v1beta2" else v1beta1

    def counted() -> bool:
        status = control_plane(scenario).get("status", {})
        found = {counter: status.get(counter) for counter in counters}
        if set(found.values()) != {replicas}:
            raise NotYet(f"wanted {replicas} everywhere: {found}")
        return True

    eventually(counted, what="counters of the control plane")


def check_rest(scenario: Scenario) -> None:
    """Check that core's server-side apply and the providers' own writes stop."""

    def generations() -> dict[str, int]:
        objects = [scenario.infrastructure_of(machine) for machine in scenario.machines()]
        objects += [control_plane(scenario), scenario.cluster(), *scenario.machines()]
        return {
            f"{each['kind']} {each['metadata']['name']}": each["metadata"]["generation"]
            for each in objects
        }

    settled(generations, seconds=_QUIET_SECONDS, what="generations")


def check_variable_arrived(scenario: Scenario, documents: list[JSON], machines: list[JSON]) -> None:
    (cluster,) = (each for each in documents if each["kind"] == "Cluster")
    values = {each["name"]: each["value"] for each in cluster["spec"]["topology"]["variables"]}
    for machine in machines:
        spec = scenario.infrastructure_of(machine)["spec"]
        shared = {name: spec[name] for name in values if name in spec}
        assert shared
        assert shared == {name: values[name] for name in shared}


def wait_replaced(scenario: Scenario, machine: JSON) -> None:
    def replaced() -> bool:
        names = [each["metadata"]["name"] for each in scenario.machines()]
        if machine["metadata"]["name"] in names:
            raise NotYet(f"machines: {names}")
        return True

    eventually(replaced, timeout=WHOLE_SECONDS, what="the machine replaced")


def untouched(scenario: Scenario, before: list[Event]) -> None:
    assert scenario.journal() == before


def secrets_of(scenario: Scenario) -> dict[str, JSON]:
    """Return certificates and bootstrap data by name; a move must keep them."""
    found = scenario.client.list("v1", "Secret", scenario.namespace)
    named = {each["metadata"]["name"]: each["data"] for each in found}
    return {name: data for name, data in named.items() if name.startswith(scenario.name)}
