"""A management cluster in which later releases replace core and the provider."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.fakes.booting import BootingCluster
from tests.e2e.harness.cloud import Event
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.lineage import ENDPOINTS, Lineage
from tests.e2e.releases import OLDEST, core_release
from tests.e2e.scenario import Scenario
from tests.e2e.stack import Combination, Site, Stack
from tests.e2e.upgrade_checks import stored_objects
from tests.e2e.whole import control_plane


class UpgradedStack:
    """A stack without helpers: each cluster boots its own API server."""

    def __init__(self, base: Base, name: str, report: Report) -> None:
        combination = Combination(OLDEST, "v1beta1", "ferry", name)
        self._base = base
        self.report = report
        self.lineage = Lineage(base.folder / name / "author")
        with report.phase(name, "generate and release v0.1"):
            provider = self.lineage.begin("v0.1.0")
        self.stack = Stack(base, None, combination, provider, report)
        (self.stack.cloud.folder / ENDPOINTS).mkdir()
        with ExitStack() as failed:
            failed.callback(self.stack.stop)
            self.site: Site = self.stack.start()
            failed.pop_all()

    @contextmanager
    def cluster(self, name: str) -> Iterator[Scenario]:
        """Return a context manager with a cluster that boots by itself, at its own address."""
        stack, port = self.stack, free_port()
        (stack.cloud.folder / ENDPOINTS / name).write_text(str(port))
        made = Scenario(stack, self.site.management, name, f"{name}-ns")
        self.site.management.ensure_namespace(made.namespace)
        booting = BootingCluster(self._base, stack.cloud, port, made.namespace, name)
        made.booting = booting
        booting.start(lambda: made.client)
        try:
            yield made
        finally:
            booting.stop()

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Return a context manager that measures the code inside it."""
        return self.report.phase(self.stack.name, name)

    def upgrade_without_core(self, release: ProviderUnderTest, series: str) -> None:
        """Run clusterctl of a series to upgrade the provider alone.

        Raises ClusterctlError if it fails.
        """
        stack, management = self.stack, self.site.management
        targets = {part.type: f"{part.name}:{release.version}" for part in release.parts}
        stack.clusterctl_of(series).upgrade(management.kubeconfig, targets, {})

    def upgrade_with_core(self, release: ProviderUnderTest, series: str) -> None:
        """Run clusterctl of a series to upgrade the provider and core.

        Raises ClusterctlError if it fails.
        """
        stack, management = self.stack, self.site.management
        targets = {part.type: f"{part.name}:{release.version}" for part in release.parts}
        targets["core"] = f"cluster-api:{core_release(series)}"
        stack.clusterctl_of(series).upgrade(management.kubeconfig, targets, {})

    def stop(self) -> None:
        """End all processes."""
        self.stack.stop()


@dataclass(frozen=True)
class Identity:
    """The state that an upgrade must keep: equal before and after it."""

    machines: dict[str, tuple[str, str]]
    """By name: uid, and the Node."""
    objects: dict[str, str]
    """Of the provider's kinds, by kind and name: uid."""
    servers: tuple[str, ...]
    journal: tuple[Event, ...]


def identity(scenarios: Iterable[Scenario]) -> Identity:
    """Return the present state of some clusters."""
    clusters = list(scenarios)
    machines = [each for scenario in clusters for each in scenario.machines()]
    first = clusters[0]
    return Identity(
        machines={
            each["metadata"]["name"]: (each["metadata"]["uid"], each["status"]["nodeRef"]["name"])
            for each in machines
        },
        objects={
            f"{each['kind']} {each['metadata']['name']}": each["metadata"]["uid"]
            for each in stored_objects(first.client, first.stack.provider)
        },
        servers=tuple(sorted(server.id for server in first.stack.cloud.servers())),
        journal=tuple(first.journal()),
    )


def scale_control_plane(scenario: Scenario, replicas: int) -> None:
    """Scale the control plane of a cluster without a topology."""
    scenario.client.patch(control_plane(scenario), {"spec": {"replicas": replicas}})


def scale_topology(scenario: Scenario, workers: int) -> None:
    """Scale the workers of a cluster with a topology."""
    cluster = scenario.cluster()
    topology = cluster["spec"]["topology"]
    (workers_of,) = topology["workers"]["machineDeployments"]
    changed = {**topology["workers"], "machineDeployments": [{**workers_of, "replicas": workers}]}
    scenario.client.patch(cluster, {"spec": {"topology": {"workers": changed}}})


def turn_class(scenario: Scenario, old: str, new: str) -> None:
    """Change versions, references and patches in the users' class, all at once.

    If a reference had one version and a patch selected the other, the patch would not apply,
    and all machines would be replaced without it.
    """
    eventually(lambda: _turned(scenario, old, new), what="the class turned")

    def observed() -> bool:
        (found,) = scenario.client.list(scenario.core, "ClusterClass", scenario.namespace)
        seen = found.get("status", {}).get("observedGeneration")
        if seen != found["metadata"]["generation"]:
            raise NotYet(f"core has seen generation {seen} of the class")
        return True

    eventually(observed, what="the class seen by core")


def _turned(scenario: Scenario, old: str, new: str) -> bool:
    """Core writes on classes too: then once more."""
    client = scenario.client
    (found,) = client.list(scenario.core, "ClusterClass", scenario.namespace)
    text = json.dumps(found["spec"])
    for group in sorted(scenario.stack.provider.groups):
        text = text.replace(f'"{group}/{old}"', f'"{group}/{new}"')
    assert old not in text
    metadata = found["metadata"]
    path = client.path(scenario.core, "ClusterClass", metadata["name"], scenario.namespace)
    client.request("PUT", path, body={**found, "spec": json.loads(text)})
    return True
