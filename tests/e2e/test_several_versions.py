"""A provider with several API versions and machine kinds; and core as most people run it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.chain import add_chain, wait_gone
from tests.e2e.fakes.dialect import CONTROL_PLANE as _CONTROL_PLANE
from tests.e2e.harness.report import Report
from tests.e2e.least_privilege import EVERYTHING, check_least_privilege
from tests.e2e.pool import add_pools
from tests.e2e.provider import build_provider
from tests.e2e.scenario import Scenario, condition, one_scenario, wait_moved_away, wait_nothing_left
from tests.e2e.stack import SEVERAL_VERSIONS, Site, Stack

_FLAVOR = "a-large-one"
_METAL_FLAVOR = "metal"
_SLOW_SECONDS = 300.0
_API_VERSION = "infrastructure.nimbus.example.com/v1beta1"
_GROUP = _API_VERSION, "NimbusSecurityGroup"
_REMEDIATION = _API_VERSION, "NimbusRemediation"
_MARK = "cluster.x-k8s.io/remediate-machine"


@pytest.fixture(scope="module")
def several(base: Base, workload: ApiServer, report: Report) -> Iterator[tuple[Stack, Site]]:
    folder: Path = base.folder / str(SEVERAL_VERSIONS)
    provider = build_provider(SEVERAL_VERSIONS.example, SEVERAL_VERSIONS.contract, folder)
    stack = Stack(base, workload, SEVERAL_VERSIONS, provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def versions_scenario(
    request: pytest.FixtureRequest, several: tuple[Stack, Site]
) -> Iterator[Scenario]:
    with one_scenario(*several, request.node.originalname) as made:
        yield made


def test_several_versions(versions_scenario: Scenario) -> None:
    """Proves: GEN-03."""
    scenario = versions_scenario
    report, stack = scenario.stack.report, scenario.stack.name
    documents = scenario.render(1, 1, flavor=scenario.stack.provider.topology_flavor)
    _set_variable(documents, "flavor", _FLAVOR)
    # Servers of a pool as a whole have no Machines.
    add_pools(documents, {"nimbusmachinepool": 0})
    with report.phase(stack, "several versions: create from a class"):
        scenario.create(documents)
        machines = scenario.wait_running(2)
        eventually(lambda: _references_current(scenario), what="references of the class")
    for machine in machines:
        assert scenario.infrastructure_of(machine)["spec"]["flavor"] == _FLAVOR
    _check_readable_in_all_versions(scenario, machines[0])
    scenario.delete()
    scenario.delete_classes()
    wait_nothing_left(scenario)


# test_whole_cluster.py moves objects with their owners, and
# capsmith_runtime/testing/conformance/resource/resources.py moves resources.
@pytest.mark.exhaustive
def test_resources_move_with_their_owners(
    versions_scenario: Scenario, several: tuple[Stack, Site]
) -> None:
    """They have new uids at the target, and the same infrastructure.

    Proves: MV-02, MV-03, MV-08, SM-09.
    """
    scenario, (stack, _) = versions_scenario, several
    report, target = stack.report, stack.add_site("second")
    with report.phase(stack.name, "resources: create"):
        scenario.create(scenario.render(control_planes=1, workers=0))
        scenario.wait_running(1)
        owned = _add_group(scenario, "owned", ownerReferences=[_owner(_infrastructure(scenario))])
        _add_group(scenario, "nested", ownerReferences=[_owner(owned)])
        _add_group(scenario, "labelled", labels={"cluster.x-k8s.io/cluster-name": scenario.name})
        eventually(lambda: _all_ready(scenario, 3), what="resources are ready")
    existing = sorted(stack.cloud.resources())
    with report.phase(stack.name, "resources: clusterctl move"):
        source = scenario.management.kubeconfig
        stack.clusterctl.move(source, target.management.kubeconfig, scenario.namespace)
        wait_moved_away(scenario)
        scenario.management = target.management
        scenario.wait_running(1)
        eventually(lambda: _all_ready(scenario, 3), what="resources are ready at the target")
    moved = _groups(scenario)
    for name, owner in (("owned", _infrastructure(scenario)), ("nested", moved["owned"])):
        (reference,) = moved[name]["metadata"]["ownerReferences"]
        assert reference["uid"] == owner["metadata"]["uid"]
    assert sorted(stack.cloud.resources()) == existing
    with report.phase(stack.name, "resources: delete the Cluster"):
        scenario.delete()
        eventually(lambda: _only(scenario, "labelled"), what="owned ones are deleted")
        scenario.client.delete(moved["labelled"])
        wait_nothing_left(scenario)
    left = [each for each in stack.cloud.resources() if not each.startswith("nimbusimage.")]
    assert left == []


@pytest.mark.exhaustive
def test_remediation(versions_scenario: Scenario, several: tuple[Stack, Site]) -> None:
    """A worker is restarted for a health check of core, and replaced once it has no server.

    The cluster uses a chain of identities, and has a resource.

    Proves: ER-01, ER-02, ER-03, ER-04, ER-05, ER-06, ER-07, RB-04, RB-06, RB-07.
    """
    scenario = versions_scenario
    cloud, report, stack = scenario.stack.cloud, scenario.stack.report, scenario.stack.name
    with report.phase(stack, "remediation: create"):
        chain, documents = add_chain(scenario, {}), scenario.render(control_planes=1, workers=1)
        chain.use_in(scenario, documents)
        scenario.create(documents)
        machines = scenario.wait_running(2)
        _add_group(scenario, "owned", ownerReferences=[_owner(_infrastructure(scenario))])
        eventually(lambda: _all_ready(scenario, 1), what="the resource is ready")
    template = _add_health_check(scenario)
    worker = next(each for each in machines if _CONTROL_PLANE not in each["metadata"]["labels"])
    name = worker["metadata"]["name"]
    with report.phase(stack, "remediation: restart"):
        _mark(scenario, name, "")
        eventually(lambda: _is_remediated(scenario, name), what="the worker is remediated")
        _mark(scenario, name, None)
        eventually(lambda: _find_remediation(scenario, name) is None, what="core takes it back")
    assert cloud.restarts() == 1
    assert condition(_machine(scenario, name), "ExternallyRemediated") is None
    with report.phase(stack, "remediation: replace"):
        cloud.remove_server(_machine(scenario, name)["spec"]["infrastructureRef"]["name"])
        _mark(scenario, name, "")
        eventually(lambda: _is_replaced(scenario, name), what="the worker is replaced")
        scenario.wait_running(2)
    assert cloud.restarts() == 1
    scenario.client.delete(template)
    scenario.delete()
    wait_nothing_left(scenario)
    for each in chain.objects:
        scenario.client.delete(each)
    wait_gone(scenario, *chain.objects)
    check_least_privilege(several[1], "infrastructure", explained=EVERYTHING)


def _add_health_check(scenario: Scenario) -> JSON:
    """Create a health check that requires remediation of Machines with the annotation only."""
    kind = f"{_REMEDIATION[1]}Template"
    metadata = {"name": "restart", "namespace": scenario.namespace}
    spec: JSON = {"template": {"spec": {"timeoutSeconds": 60}}}
    template = scenario.client.create(
        {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
    )
    unhealthy = {"type": "Unknown", "status": "True", "timeoutSeconds": 3600}
    reference = {"apiVersion": _API_VERSION, "kind": kind, "name": "restart"}
    labels = {"cluster.x-k8s.io/cluster-name": scenario.name}
    scenario.client.create(
        {
            "apiVersion": scenario.core,
            "kind": "MachineHealthCheck",
            "metadata": {"name": scenario.name, "namespace": scenario.namespace},
            "spec": {
                "clusterName": scenario.name,
                "selector": {"matchLabels": labels},
                "checks": {"unhealthyNodeConditions": [unhealthy]},
                "remediation": {"templateRef": reference},
            },
        }
    )
    return template


def _machine(scenario: Scenario, name: str) -> JSON:
    return scenario.client.get(scenario.core, "Machine", name, scenario.namespace)


def _mark(scenario: Scenario, name: str, value: str | None) -> None:
    scenario.client.patch(_machine(scenario, name), {"metadata": {"annotations": {_MARK: value}}})


def _find_remediation(scenario: Scenario, name: str) -> JSON | None:
    return scenario.client.find(*_REMEDIATION, name, scenario.namespace)


def _is_remediated(scenario: Scenario, name: str) -> bool:
    found = _find_remediation(scenario, name) or {}
    states = condition(found, "Ready"), condition(_machine(scenario, name), "ExternallyRemediated")
    if [state and state["status"] for state in states] != ["True", "True"]:
        raise NotYet(f"Ready and ExternallyRemediated: {states}")
    return True


def _is_replaced(scenario: Scenario, name: str) -> bool:
    names = [each["metadata"]["name"] for each in scenario.machines()]
    if name in names:
        raise NotYet(f"machines: {names}")
    return True


def test_default_gates(versions_scenario: Scenario, several: tuple[Stack, Site]) -> None:
    """Core with its rate limit and preflight checks, and the provider's second machine kind.

    Proves: CC-70.
    """
    scenario, (_, site) = versions_scenario, several
    report, stack = scenario.stack.report, scenario.stack.name
    site.management.core.restart_with_default_gates()
    documents = scenario.render(1, 1, flavor=_METAL_FLAVOR)
    with report.phase(stack, "default gates: create"):
        scenario.create(documents)
        machines = scenario.wait_running(2, timeout=_SLOW_SECONDS)
    kinds = {machine["spec"]["infrastructureRef"]["kind"] for machine in machines}
    assert kinds == {"NimbusServer"}
    with report.phase(stack, "default gates: scale workers 1 -> 2"):
        scenario.scale_workers(2)
        scenario.wait_running(3, timeout=_SLOW_SECONDS)
    with report.phase(stack, "default gates: delete"):
        scenario.delete(timeout=_SLOW_SECONDS)
        wait_nothing_left(scenario)


def _infrastructure(scenario: Scenario) -> JSON:
    reference = scenario.cluster()["spec"]["infrastructureRef"]
    version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
    return scenario.client.get(version, kind, name, scenario.namespace)


def _owner(obj: JSON) -> JSON:
    names = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**names, "name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _add_group(scenario: Scenario, name: str, **metadata: object) -> JSON:
    return scenario.client.create(
        {
            "apiVersion": _GROUP[0],
            "kind": _GROUP[1],
            "metadata": {"name": name, "namespace": scenario.namespace, **metadata},
            "spec": {"rules": [{"protocol": "tcp", "port": 22}]},
        }
    )


def _groups(scenario: Scenario) -> dict[str, JSON]:
    found = scenario.client.list(*_GROUP, scenario.namespace)
    return {each["metadata"]["name"]: each for each in found}


def _all_ready(scenario: Scenario, count: int) -> bool:
    states = {name: condition(each, "Ready") for name, each in _groups(scenario).items()}
    if [state and state["status"] for state in states.values()] != ["True"] * count:
        raise NotYet(f"Ready: {states}")
    return True


def _only(scenario: Scenario, *names: str) -> bool:
    left = _groups(scenario).keys()
    if left != set(names):
        raise NotYet(f"still there: {sorted(left)}")
    return True


def _set_variable(documents: list[JSON], name: str, value: str) -> None:
    """Patches of a class select templates by version too: a variable shows that they match."""
    (cluster,) = (each for each in documents if each["kind"] == "Cluster")
    variables = {each["name"]: each for each in cluster["spec"]["topology"]["variables"]}
    variables[name]["value"] = value


def _references_current(scenario: Scenario) -> bool:
    """The class names the version that core itself would choose."""
    (found,) = scenario.client.list(scenario.core, "ClusterClass", scenario.namespace)
    state = condition(found, "RefVersionsUpToDate")
    if state is None or state["status"] != "True":
        raise NotYet(f"RefVersionsUpToDate: {state}")
    return True


def _check_readable_in_all_versions(scenario: Scenario, machine: JSON) -> None:
    kind = machine["spec"]["infrastructureRef"]["kind"]
    crd = next(
        each["spec"]
        for each in scenario.stack.provider.crds
        if each["spec"]["names"]["kind"] == kind
    )
    specs = []
    for version in crd["versions"]:
        api_version = f"{crd['group']}/{version['name']}"
        name = machine["spec"]["infrastructureRef"]["name"]
        specs.append(scenario.client.get(api_version, kind, name, scenario.namespace)["spec"])
    assert len(specs) == 3
    assert all(spec == specs[0] for spec in specs)
    assert specs[0]["providerID"] == machine["spec"]["providerID"]
