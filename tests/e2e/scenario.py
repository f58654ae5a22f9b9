"""Steps with one workload cluster, and the waits for their effects."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.cluster import ManagementCluster
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient, StaleError
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import PATIENCE, NotYet, eventually
from tests.e2e.access import check_requests, series_between
from tests.e2e.dump import objects_text
from tests.e2e.fakes.booting import BootingCluster
from tests.e2e.fakes.control_plane import kubeconfig_secret
from tests.e2e.harness.cloud import Event
from tests.e2e.releases import KUBERNETES
from tests.e2e.stack import Site, Stack


class Scenario:
    """A cluster, named in one namespace; a move may change its management cluster."""

    def __init__(
        self, stack: Stack, management: ManagementCluster, name: str, namespace: str
    ) -> None:
        self.stack = stack
        self.management = management
        self.name = name
        self.namespace = namespace
        self.booting: BootingCluster | None = None
        """Set where the cluster's own machines run its API server."""

    @property
    def client(self) -> KubeClient:
        return self.management.client

    @property
    def core(self) -> str:
        return self.stack.dialect.core

    @property
    def workload(self) -> ApiServer:
        """Return the API server that holds the cluster's Nodes."""
        if self.booting is None:
            return self.stack.workload
        assert self.booting.server is not None, "no machine has booted yet"
        return self.booting.server

    def render(self, control_planes: int, workers: int, flavor: str | None = None) -> list[JSON]:
        """Return the cluster's objects from the real `clusterctl generate cluster`."""
        options: dict[str, object] = {
            "infrastructure": self.stack.provider.name,
            "kubernetes-version": KUBERNETES,
            "control-plane-machine-count": control_planes,
            "worker-machine-count": workers,
            "target-namespace": self.namespace,
        }
        if flavor is not None:
            options["flavor"] = flavor
        rendered = self.stack.clusterctl.generate(
            self.management.kubeconfig, self.name, options, self.stack.provider.variables
        )
        return self.stack.rewrite(rendered)

    def create(self, documents: list[JSON]) -> None:
        """Apply a rendered cluster, the Cluster itself last.

        The kubeconfig comes first. Core connects as soon as the infrastructure is
        provisioned; if the Secret came a moment later, core would retry only after 30
        seconds.
        """
        if self.booting is None and not self.stack.provider.has("control-plane"):
            kubeconfig = self.stack.workload.kubeconfig_text
            self.client.apply(kubeconfig_secret(self.name, self.namespace, kubeconfig))
        for document in sorted(documents, key=lambda each: str(each["kind"]) == "Cluster"):
            self.client.apply(document)

    def cluster(self) -> JSON:
        return self.client.get(self.core, "Cluster", self.name, self.namespace)

    def machines(self) -> list[JSON]:
        labels = {"cluster.x-k8s.io/cluster-name": self.name}
        return self.client.list(self.core, "Machine", self.namespace, labels)

    def servers(self) -> list[Server]:
        """Return the cluster's servers; core starts all Machine names with the cluster's name."""
        return [
            server
            for server in self.stack.cloud.servers()
            if server.name.startswith(f"{self.name}-")
        ]

    def journal(self) -> list[Event]:
        return self.stack.cloud.journal()

    def wait_running(self, machines: int, timeout: float = PATIENCE) -> list[JSON]:
        """Wait until all Machines are Running with Nodes, and as many servers exist."""

        def running() -> list[JSON]:
            found = self.machines()
            phases = {m["metadata"]["name"]: m.get("status", {}).get("phase") for m in found}
            if len(found) != machines or set(phases.values()) != {"Running"}:
                raise NotYet(f"wanted {machines} running machines, found {phases}")
            if len(self.servers()) != machines:
                raise NotYet(f"servers: {[server.name for server in self.servers()]}")
            phase = self.cluster().get("status", {}).get("phase")
            if phase != "Provisioned":
                raise NotYet(f"the cluster is {phase}")
            self._check_nodes(found)
            return found

        return eventually(running, timeout=timeout, what=f"{self.name} running")

    def scale_workers(self, replicas: int) -> None:
        (deployment,) = self.client.list(
            self.core,
            "MachineDeployment",
            self.namespace,
            {"cluster.x-k8s.io/cluster-name": self.name},
        )
        self.client.patch(deployment, {"spec": {"replicas": replicas}})

    def pause(self) -> None:
        """Pause the cluster, and wait until core reports this of the Cluster and its Machines.

        Their infrastructure objects do so too if the provider's contract has the condition.
        Otherwise, what a test changes next could arrive before the pause: each kind has a watch of
        its own.
        """
        self.client.patch(self.cluster(), {"spec": {"paused": True}})

        def paused() -> bool:
            machines = self.machines()
            objects = [self.cluster(), *machines]
            if self.stack.provider.contract == "v1beta2":
                objects += [self.infrastructure_of(each) for each in machines]
            for obj in objects:
                found = current_condition(obj, "Paused")
                if found is None or found["status"] != "True":
                    raise NotYet(f"{obj['kind']} {obj['metadata']['name']}: {found}")
            return True

        eventually(paused, what=f"{self.name} paused")

    def resume(self) -> None:
        """End the pause of the cluster."""
        self.client.patch(self.cluster(), {"spec": {"paused": False}})

    def delete(self, timeout: float = PATIENCE) -> None:
        """Delete the Cluster as a user does, and wait until core confirms that it is gone.

        It may be gone already, because an earlier deletion continues by itself.
        """

        def found() -> JSON | None:
            return self.client.find(self.core, "Cluster", self.name, self.namespace)

        def gone() -> bool:
            cluster = found()
            if cluster is None:
                return True
            raise NotYet("; ".join(map(_deletion, (cluster, *self.machines()))))

        cluster = found()
        if cluster is not None:
            self.client.delete(cluster)
        eventually(gone, timeout=timeout, what=f"cluster {self.name} gone")

    def delete_classes(self) -> None:
        """Delete the ClusterClasses; core refuses while it knows of a Cluster that uses one."""

        def deleted() -> bool:
            classes = self.client.list(self.core, "ClusterClass", self.namespace)
            for each in classes:
                try:
                    self.client.delete(each)
                except ApiError as error:
                    raise NotYet(str(error)) from error
            return not classes

        eventually(deleted, what="the classes deleted")

    def infrastructure_of(self, machine: JSON) -> JSON:
        """Return the provider's object for a Machine."""
        reference = machine["spec"]["infrastructureRef"]
        version, kind, name = self.stack.dialect.resolve(self.client, reference)
        return self.client.get(version, kind, name, self.namespace)

    def _check_nodes(self, machines: list[JSON]) -> None:
        servers = {server.provider_id: server for server in self.servers()}
        for machine in machines:
            node_name = machine["status"]["nodeRef"]["name"]
            node = self.workload.client.get("v1", "Node", node_name)
            provider_id = machine["spec"]["providerID"]
            assert node["spec"]["providerID"] == provider_id, node
            assert provider_id in servers, f"{provider_id} is no server of the cloud"


def infrastructure_cluster(scenario: Scenario, documents: list[JSON]) -> JSON:
    """Return the rendered InfraCluster, which can be changed before it is applied."""
    kinds = {
        each["spec"]["names"]["kind"]
        for each in scenario.stack.provider.namespaced_crds
        if each["spec"]["names"]["kind"].endswith("Cluster")
    }
    (found,) = (each for each in documents if each["kind"] in kinds)
    return found


def private_identity(scenario: Scenario, namespaces: list[str]) -> tuple[JSON, JSON]:
    """Apply a second identity for these namespaces, with its own Secret.

    Returns the Secret and the identity.
    """
    sample_secret, sample = copy.deepcopy(scenario.stack.provider.prerequisites)
    secret, identity = sample_secret, sample
    for each in (secret, identity):
        each["metadata"]["name"] += "-private"
    identity["spec"]["secretRef"]["name"] = secret["metadata"]["name"]
    identity["spec"]["allowedNamespaces"] = {"list": namespaces}
    for each in (secret, identity):
        scenario.client.apply(each)
    return secret, identity


def infrastructure_check(scenario: Scenario, labels: Mapping[str, str]) -> JSON:
    """Return a health check that replaces Machines one second after their infrastructure failed.

    Their condition InfrastructureReady is False then.  It acts on the Machines with the labels, in
    API version v1beta2 of core.
    """
    unhealthy = {"type": "InfrastructureReady", "status": "False", "timeoutSeconds": 1}
    checks = {"checks": {"unhealthyMachineConditions": [unhealthy]}}
    return build_health_check(scenario, labels, checks)


def build_health_check(
    scenario: Scenario, labels: Mapping[str, str], checks: Mapping[str, Any]
) -> JSON:
    """Return a health check of the cluster's Machines with the labels.

    ``checks`` are the fields of its spec that say which Machines are unhealthy.
    """
    return {
        "apiVersion": scenario.core,
        "kind": "MachineHealthCheck",
        "metadata": {"name": scenario.name, "namespace": scenario.namespace},
        "spec": {
            "clusterName": scenario.name,
            "selector": {"matchLabels": dict(labels)},
            **checks,
        },
    }


def provider_objects(client: KubeClient, crds: list[JSON]) -> list[str]:
    """Return all objects of the provider's kinds, as `Kind namespace/name`."""
    found = []
    for crd in crds:
        spec = crd["spec"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        kind = spec["names"]["kind"]
        for obj in client.list(f"{spec['group']}/{stored}", kind):
            metadata = obj["metadata"]
            found.append(f"{kind} {metadata.get('namespace', '')}/{metadata['name']}")
    return found


def wait_nothing_left(scenario: Scenario) -> None:
    """Wait until no provider object, Secret or infrastructure of the cluster is left."""

    def nothing() -> bool:
        left = provider_objects(scenario.client, scenario.stack.provider.namespaced_crds)
        secrets = scenario.client.list(
            "v1", "Secret", scenario.namespace, {"cluster.x-k8s.io/cluster-name": scenario.name}
        )
        left += [f"Secret {secret['metadata']['name']}" for secret in secrets]
        left += [f"server {server.id}" for server in scenario.stack.cloud.servers()]
        left += [f"cloud cluster {cluster.id}" for cluster in scenario.stack.cloud.clusters()]
        if left:
            raise NotYet(f"still there: {left}")
        return True

    eventually(nothing, what="nothing left")


def wait_moved_away(scenario: Scenario) -> None:
    """Wait until the source of the move has no provider objects."""

    def nothing() -> bool:
        left = provider_objects(scenario.client, scenario.stack.provider.namespaced_crds)
        if left:
            raise NotYet(f"left at the source: {left}")
        return True

    eventually(nothing, what="nothing left at the source")


def condition(obj: JSON, kind: str) -> JSON | None:
    """Return the condition of a type in either format; None if there is none."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == kind), None)


def current_condition(obj: JSON, kind: str) -> JSON | None:
    """Return the condition of a type in the format of v1beta2; None if there is none.

    Objects of API version v1beta1 have these conditions beside those of the old format.
    """
    beside = {"status": obj.get("status", {}).get("v1beta2", {})}
    return condition(obj, kind) or condition(beside, kind)


def _deletion(obj: JSON) -> str:
    """What core says of the deletion of one of its objects, for the message of a failure."""
    found = current_condition(obj, "Deleting") or {}
    return (
        f"{obj['kind']} {obj['metadata']['name']}: {found.get('message', 'no condition Deleting')}"
    )


def denied(client: KubeClient, obj: JSON, body: Mapping[str, Any]) -> str:
    """Return the message that rejects a patch; fail if the patch is accepted.

    A policy is compiled some time after its creation; until then, everything is accepted.
    """

    def refused_on_trial() -> bool:
        try:
            client.patch(obj, dict(body), dry_run=True)
        except StaleError:
            raise
        except ApiError:
            return True
        raise NotYet(f"let through: {body}")

    eventually(refused_on_trial, what="the policy in force")
    with pytest.raises(ApiError) as refused:
        client.patch(obj, dict(body))
    assert refused.value.status in (403, 422), refused.value
    return refused.value.message


@contextmanager
def one_scenario(stack: Stack, site: Site, test: str) -> Iterator[Scenario]:
    """Return a context manager with a scenario named after its test; clean up at the end."""
    name = test.removeprefix("test_").replace("_", "-")[:20].rstrip("-")
    made = Scenario(stack, site.management, name, f"{name}-ns")
    site.management.ensure_namespace(made.namespace)
    with stack.temporary_sites():
        yield made
        _keep_what_is_left(made)
        _clean_up(made)
    _check_invariants(stack, site)


def _keep_what_is_left(scenario: Scenario) -> None:
    """A test that ends before its cluster does has failed: people will want to see why."""
    stack, client = scenario.stack, scenario.client
    if client.find(scenario.core, "Cluster", scenario.name, scenario.namespace) is None:
        return
    crds = stack.provider.namespaced_crds
    text = objects_text(client, scenario.core, crds, scenario.namespace)
    (stack.folder / f"{scenario.name}-objects.yaml").write_text(text)


def _check_invariants(stack: Stack, site: Site) -> None:
    """What must hold whatever a test did."""
    created = [event.id for event in stack.cloud.journal() if event.action == "create"]
    twice = {id for id in created if created.count(id) > 1}
    assert not twice, f"created more than once: {twice}"
    for manager in site.managers.values():
        assert manager.complaints() == []
    # An upgrade goes by releases between.
    series = series_between(stack.series, site.management.series)
    check_requests(stack.provider, site.management, series)


def _clean_up(scenario: Scenario) -> None:
    client = scenario.client
    if client.find(scenario.core, "Cluster", scenario.name, scenario.namespace) is not None:
        with suppress(StaleError):  # it goes in this moment
            scenario.resume()
        scenario.delete()
    if provider_objects(client, scenario.stack.provider.namespaced_crds):
        scenario.delete_classes()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scenario.namespace}}
    client.delete(namespace)
