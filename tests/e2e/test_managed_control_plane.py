"""Clusters whose control plane a service runs: no Machines, an endpoint, a kubeconfig."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
import yaml

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from capsmith.commands.conformance import run
from capsmith.commands.conformance_release import ConformanceRequest
from capsmith.judge.running.model import CheckOutcome
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_form, build_provider
from tests.e2e.releases import KUBERNETES, KUBERNETES_NEXT, NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import Scenario, one_scenario
from tests.e2e.stack import Combination, Site, Stack, install_variables
from tests.e2e.topology import wait_reconciled
from tests.e2e.whole import Watch, control_plane, crash, delete_and_check, wait_available
from tests.exhaustive import exhaustive


def _combination(series: str, contract: ContractVersion) -> Combination:
    return Combination(series, contract, "managed", f"managed-{series}-{contract}")


MANAGED = (
    _combination(NEWEST, "v1beta2"),
    *exhaustive(_combination(OLDEST, "v1beta1")),
    *exhaustive(*(_combination(series, "v1beta2") for series in PREVIOUS)),
)
_CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
_QUIET_SECONDS = 2.0
_ROLL_SECONDS = 300.0
_DEFAULT = {"name": "default", "namespace": "default"}
_ACCOUNT: JSON = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _DEFAULT}


@pytest.fixture(scope="module", params=MANAGED, ids=str)
def managed(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    """Return a stack whose service runs all control planes at one address."""
    combination: Combination = request.param
    folder = base.folder / str(combination)
    with report.phase(str(combination), "build the provider"):
        provider = build_provider(combination.example, combination.contract, folder)
    environment = {
        "CAPSMITH_SIMULATED_ENDPOINT": workload.url.removeprefix("https://"),
        "CAPSMITH_SIMULATED_KUBECONFIG": str(workload.kubeconfig),
    }
    stack = Stack(base, workload, combination, provider, report, environment)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, managed: tuple[Stack, Site]) -> Iterator[Scenario]:
    with one_scenario(*managed, request.node.originalname) as made:
        yield made


def test_infrastructure_without_an_endpoint_conforms(managed: tuple[Stack, Site]) -> None:
    stack, site = managed
    checks = ("cluster-endpoint", "cluster-ready")
    request = ConformanceRequest(stack.series, site.management.kubeconfig, select=checks)
    report = run(stack.provider.out, request, print, lambda result: None)
    assert [each.outcome for each in report.results] == [CheckOutcome.SKIPPED, CheckOutcome.PASSED]


def test_managed_life(scenario: Scenario, managed: tuple[Stack, Site]) -> None:
    """Proves: CP-01, CP-02, CP-03, CP-08, CP-10, CP-22, CP-25, CP-26, CP-34, SEC-01, SM-09."""
    (stack, site), report, name = managed, scenario.stack.report, scenario.stack.name
    with report.phase(name, "managed: create with 2 workers, with a crash"):
        scenario.create(scenario.render(control_planes=1, workers=2))
        crash(site, within=4.0)
        scenario.wait_running(2)
        wait_available(scenario)
    eventually(lambda: _tells_endpoint(scenario), what="endpoint and version")
    eventually(lambda: _has_kubeconfig(scenario), what="the kubeconfig", interval=0.1)
    with report.phase(name, "managed: workers 2 -> 1, drained"):
        _scale_down_with_drain(scenario)
    with report.phase(name, "managed: upgrade of the control plane, with a crash"):
        version = {"version": KUBERNETES_NEXT.removeprefix("v")}
        scenario.client.patch(control_plane(scenario), {"spec": version})
        crash(site, within=2.0)
        eventually(lambda: _runs(scenario, KUBERNETES_NEXT), what="the version")
    with report.phase(name, "managed: delete"):
        delete_and_check(scenario)
    assert _hosted(stack) == []


def test_managed_topology(scenario: Scenario) -> None:
    """The control plane is upgraded first; workers follow when it runs the version.

    Proves: CP-08, CP-09, CP-10, CP-28, TP-09, TP-10.
    """
    report, name = scenario.stack.report, scenario.stack.name
    flavor = scenario.stack.provider.topology_flavor
    with report.phase(name, "managed: topology with 2 workers"):
        scenario.create(scenario.render(control_planes=1, workers=2, flavor=flavor))
        scenario.wait_running(2)
        wait_reconciled(scenario)
    with report.phase(name, "managed: Kubernetes upgrade of the topology"):
        topology = {"topology": {"version": KUBERNETES_NEXT}}
        scenario.client.patch(scenario.cluster(), {"spec": topology})
        _control_plane_first(scenario)
        scenario.wait_running(2)
        wait_reconciled(scenario)
    delete_and_check(scenario)
    assert _hosted(scenario.stack) == []


# test_whole_cluster.py moves a control plane of Machines with its kubeconfig, there and back.
@pytest.mark.exhaustive
def test_managed_move(scenario: Scenario, managed: tuple[Stack, Site]) -> None:
    """Proves: MV-02, MV-06, MV-08, SM-06, SEC-05, ST-11."""
    stack, report = scenario.stack, scenario.stack.report
    target = stack.add_site("second")
    scenario.create(scenario.render(control_planes=1, workers=2))
    scenario.wait_running(2)
    wait_available(scenario)
    journal, kubeconfig = scenario.journal(), _kubeconfig(scenario)["data"]
    with report.phase(stack.name, "managed: clusterctl move"):
        stack.clusterctl.move(
            scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
        )
    scenario.management = target.management
    with report.phase(stack.name, "managed: running again"):
        scenario.wait_running(2)
        wait_available(scenario)

    def untouched() -> None:
        assert scenario.journal() == journal

    steadily(untouched, seconds=_QUIET_SECONDS)
    eventually(lambda: _has_kubeconfig(scenario), what="the kubeconfig")
    assert _kubeconfig(scenario)["data"] == kubeconfig
    scenario.scale_workers(3)
    scenario.wait_running(3)
    delete_and_check(scenario)
    assert _hosted(stack) == []


_APART = {"infrastructure": ["infrastructure", "ipam"]}
"""Pools stay with the identities that they use."""


def test_another_form(managed: tuple[Stack, Site]) -> None:
    """One component becomes three, and one again, as the guide says; no object is lost.

    Proves: CC-51.
    """
    (stack, site), report = managed, managed[0].report
    contract, folder = stack.provider.contract, stack.folder
    combined = {"infrastructure": ["infrastructure", "bootstrap", "controlPlane", "ipam"]}
    with report.phase(stack.name, "other forms: build"):
        apart = build_form("managed", contract, folder / "apart", "v0.1.1", _APART)
        again = build_form("managed", contract, folder / "again", "v0.1.2", combined)
    kubeconfig, clusterctl = site.management.kubeconfig, stack.clusterctl
    for manager in site.managers.values():
        manager.stop()
    sample = _keep_sample(site)
    with report.phase(stack.name, "other forms: three components"):
        stack.offer(apart)
        targets = {"infrastructure": f"{apart.name}:{apart.version}"}
        clusterctl.upgrade(kubeconfig, targets, install_variables(apart))
        types = ("bootstrap", "control-plane")
        site.management.wait_clusterctl()
        clusterctl.init_more(kubeconfig, apart.name, install_variables(apart), *types)
    assert _labels(site, apart) == {part.label: _names(part.crds) for part in apart.parts}
    assert len(apart.parts) == 3
    with report.phase(stack.name, "other forms: one component"):
        stack.offer(again)
        for type in types:
            clusterctl.delete_provider(kubeconfig, apart.name, type)
        targets = {"infrastructure": f"{again.name}:{again.version}"}
        clusterctl.upgrade(kubeconfig, targets, install_variables(again))
    assert _labels(site, again) == {"infrastructure-lagoon": _names(again.crds)}
    assert site.management.client.find(*sample) is not None
    site.management.client.delete(site.management.client.get(*sample))
    site.management.wait_core_permitted()
    site.start_managers()


def _keep_sample(site: Site) -> tuple[str, str, str, str]:
    """Create a configuration that no Machine owns; no manager runs that would see it."""
    api_version, kind = "bootstrap.cluster.x-k8s.io/v1alpha1", "LagoonConfig"
    metadata = {"name": "kept", "namespace": "default"}
    site.management.client.create(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {}}
    )
    return api_version, kind, "kept", "default"


def _labels(site: Site, provider: ProviderUnderTest) -> dict[str, set[str]]:
    """The CRDs of the provider in the cluster, by their provider label."""
    found: dict[str, set[str]] = {}
    for name in _names(provider.crds):
        crd = site.management.client.get(*_CRD, name)
        label = crd["metadata"]["labels"]["cluster.x-k8s.io/provider"]
        found.setdefault(label, set()).add(name)
    return found


def _names(objects: list[JSON]) -> set[str]:
    return {each["metadata"]["name"] for each in objects}


def _tells_endpoint(scenario: Scenario) -> bool:
    host, _, port = scenario.workload.url.removeprefix("https://").rpartition(":")
    wanted = {"host": host, "port": int(port)}
    found = control_plane(scenario)
    assert found["spec"].get("controlPlaneEndpoint") == wanted
    assert scenario.cluster()["spec"]["controlPlaneEndpoint"] == wanted
    assert found["status"].get("externalManagedControlPlane") is True
    assert found["status"].get("version") == KUBERNETES
    return True


def _has_kubeconfig(scenario: Scenario) -> bool:
    """As `clusterctl get kubeconfig` and every cluster cache find it."""
    secret, owner = _kubeconfig(scenario), control_plane(scenario)
    assert secret["type"] == "cluster.x-k8s.io/secret"
    assert secret["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == scenario.name
    assert [each["uid"] for each in secret["metadata"]["ownerReferences"]] == [
        owner["metadata"]["uid"]
    ]
    content = yaml.safe_load(base64.b64decode(secret["data"]["value"]))
    assert content["clusters"][0]["cluster"]["server"] == scenario.workload.url
    return True


def _kubeconfig(scenario: Scenario) -> JSON:
    return scenario.client.get("v1", "Secret", f"{scenario.name}-kubeconfig", scenario.namespace)


def _scale_down_with_drain(scenario: Scenario) -> None:
    """Core drains and deletes Nodes only if the control plane reports that it has none."""
    nodes = scenario.workload.client
    if nodes.find("v1", "ServiceAccount", "default", "default") is None:
        nodes.create(_ACCOUNT)
    pods = {}
    for machine in scenario.machines():
        node = machine["status"]["nodeRef"]["name"]
        pods[node] = nodes.create(_pod(node))
    scenario.scale_workers(1)
    (kept,) = scenario.wait_running(1, timeout=_ROLL_SECONDS)
    stays = kept["status"]["nodeRef"]["name"]
    eventually(lambda: _left_on(nodes, pods) == ([stays], [stays]), what=f"Node and pod of {stays}")
    nodes.delete(pods[stays])


def _pod(node: str) -> JSON:
    """Nothing runs it; without grace it is gone as soon as it is evicted."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"on-{node}", "namespace": "default"},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "containers": [{"name": "main", "image": "none.invalid/none"}],
        },
    }


def _left_on(client: KubeClient, pods: dict[str, JSON]) -> tuple[list[str], list[str]]:
    """Of these Nodes those that are there, and those whose pod is."""
    nodes = [node for node in pods if client.find("v1", "Node", node) is not None]
    names = {node: pod["metadata"]["name"] for node, pod in pods.items()}
    return nodes, [
        node
        for node, name in names.items()
        if client.find("v1", "Pod", name, "default") is not None
    ]


def _runs(scenario: Scenario, version: str) -> bool:
    found = control_plane(scenario).get("status", {}).get("version")
    if found != version:
        raise NotYet(f"the control plane runs {found}")
    return True


def _control_plane_first(scenario: Scenario) -> None:
    def upgraded() -> bool:
        versions = [each["spec"]["version"] for each in scenario.machines()]
        if set(versions) != {KUBERNETES_NEXT} or len(versions) != 2:
            raise NotYet(f"versions: {versions}")
        return True

    def ordered(_: list[JSON], workers: list[JSON]) -> None:
        running = control_plane(scenario)["status"].get("version")
        ahead = [each for each in workers if each["spec"]["version"] == KUBERNETES_NEXT]
        if ahead and running != KUBERNETES_NEXT:
            pytest.fail(f"{len(ahead)} workers before the control plane")

    Watch(scenario, ordered).until(upgraded, timeout=_ROLL_SECONDS, what="workers upgraded")


def _hosted(stack: Stack) -> list[str]:
    """The control planes that the simulated service runs."""
    return [path.stem for path in (stack.cloud.folder / "control-planes").glob("*.json")]
