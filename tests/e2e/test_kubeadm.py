"""The templates of a generated provider, as they are, with Cluster API's providers for kubeadm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.clusters.lab.simulated.kubelet import read_configuration
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.repository import dump
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from capsmith.commands.conformance import run
from capsmith.commands.conformance_release import ConformanceRequest
from capsmith.contract.model import AuditedTest
from capsmith.judge.running.checks import WHOLE_CLUSTER
from capsmith.judge.running.model import CheckOutcome
from capsmith.judge.running.objects import TEMPLATE_NAME
from tests.e2e.access import check_shown
from tests.e2e.conforming import cluster_session
from tests.e2e.harness.report import Report
from tests.e2e.kubeadm import KUBEADM, KUBEADM_OLDEST, KUBEADM_PREVIOUS, KubeadmStack
from tests.e2e.releases import KUBERNETES
from tests.e2e.scenario import Scenario, condition
from tests.e2e.violations import VIOLATIONS, WITHOUT_REPAIR, found_violation, violated
from tests.e2e.whole import WHOLE_SECONDS, control_plane, delete_and_check, members, wait_available
from tests.exhaustive import exhaustive

_QUIET_SECONDS = 3.0
_SHORT_SECONDS = 0.5
"""For states that are not reached."""

# Certificate authorities of the control plane provider have the serial number 0.
pytestmark = pytest.mark.filterwarnings("ignore:Parsed a serial number")


@pytest.fixture(scope="module", params=[KUBEADM, *exhaustive(*KUBEADM_PREVIOUS)], ids=str)
def kubeadm(request: pytest.FixtureRequest, base: Base, report: Report) -> Iterator[KubeadmStack]:
    stack = KubeadmStack(base, request.param, report)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def scenario(kubeadm: KubeadmStack) -> Iterator[Scenario]:
    with kubeadm.scenario(TEMPLATE_NAME) as made:
        yield made


def test_kubeadm(scenario: Scenario, kubeadm: KubeadmStack) -> None:
    """Proves: RB-02."""
    report, name = kubeadm.report, kubeadm.name
    with report.phase(name, "kubeadm: create 1 control plane, 1 worker"):
        documents = kubeadm.render(scenario, control_planes=1, workers=1)
        scenario.create(documents)
        scenario.wait_running(2, timeout=WHOLE_SECONDS)
        wait_available(scenario)
    _check_control_plane(scenario, 1)
    with report.phase(name, "kubeadm: pause, control plane 1 to 2"):
        _pause_holds(scenario)
        scenario.wait_running(3, timeout=WHOLE_SECONDS)
        wait_available(scenario)
    _check_control_plane(scenario, 2)
    _check_data(scenario)
    with report.phase(name, "kubeadm: violations are found"):
        _check_violations(scenario, documents)
    with report.phase(name, "kubeadm: delete"):
        scenario.resume()
        delete_and_check(scenario)
    check_shown(kubeadm.provider, scenario.management, AuditedTest.KUBEADM)


def test_kubeadm_conforms(kubeadm: KubeadmStack, tmp_path: Path) -> None:
    """Each check of bootstrap and control plane providers passes, and none is skipped."""
    with kubeadm.unmade_scenario(TEMPLATE_NAME, "conformance-kubeadm") as scenario:
        documents = kubeadm.render(scenario, control_planes=1, workers=1)
        objects = tmp_path / "objects.yaml"
        objects.write_text(dump(documents))
        request = ConformanceRequest(
            core=kubeadm.series,
            kubeconfig=scenario.management.kubeconfig,
            objects=objects,
            timeout=WHOLE_SECONDS,
        )
        with kubeadm.report.phase(kubeadm.name, "kubeadm: conformance"):
            report = run(kubeadm.release, request, lambda text: None, lambda result: None)
    failed = [each for each in report.results if each.outcome is not CheckOutcome.PASSED]
    assert not failed, "\n".join(f"{each.name}: {each.subject} {each.message}" for each in failed)
    assert len(report.results) == len(WHOLE_CLUSTER)


@pytest.mark.exhaustive
def test_requests_of_the_oldest_release(base: Base, report: Report) -> None:
    """kubeadm's providers of the oldest release make the requests that the table of access has."""
    stack = KubeadmStack(base, KUBEADM_OLDEST, report)
    try:
        management = stack.start().management
        _let_delete_secrets(management.client)
        with stack.scenario(TEMPLATE_NAME) as scenario:
            scenario.create(stack.render(scenario, control_planes=1, workers=1))
            scenario.wait_running(2, timeout=WHOLE_SECONDS)
            wait_available(scenario)
            scenario.client.patch(control_plane(scenario), {"spec": {"replicas": 2}})
            scenario.wait_running(3, timeout=WHOLE_SECONDS)
            delete_and_check(scenario)
            check_shown(stack.provider, scenario.management, AuditedTest.KUBEADM)
    finally:
        stack.stop()


def _let_delete_secrets(client: KubeClient) -> None:
    """Let the control plane provider own the Secrets for etcd, which the test makes.

    Its role of v1.10 has no `delete`, which the API server's plugin
    OwnerReferencesPermissionEnforcement demands of what sets an owner; later releases have it.
    """
    name, namespace = "own-secrets", "capi-kubeadm-control-plane-system"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    account = "capi-kubeadm-control-plane-manager"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["delete"]}
    api = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name}}
    client.apply({**api, "kind": "ClusterRole", "rules": [rule]})
    client.apply({**api, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]})


def _check_violations(scenario: Scenario, documents: list[JSON]) -> None:
    """Each check fails where the providers would have done what it forbids."""
    session = cluster_session(scenario, documents, "v1beta2", _SHORT_SECONDS)
    scenario.pause()
    eventually(lambda: _is_paused(scenario), what="the control plane paused")
    session.start()
    try:
        session.take_over()
        failures = {each.check: found_violation(session, each) for each in VIOLATIONS}
        failures |= {name: violated(session, name) for name in WITHOUT_REPAIR}
    finally:
        session.history.stop()
    assert failures.keys() == {check.name for check in WHOLE_CLUSTER}
    for name, failure in failures.items():
        print(f"{name}: {failure.subject} {failure.path}: {failure}")


def _pause_holds(scenario: Scenario) -> None:
    """A paused control plane is left alone, whatever is asked of it."""
    scenario.pause()
    eventually(lambda: _is_paused(scenario), what="the control plane paused")
    before = scenario.journal()
    scenario.client.patch(control_plane(scenario), {"spec": {"replicas": 2}})

    def untouched() -> None:
        assert len(members(scenario)) == 1
        assert scenario.journal() == before

    steadily(untouched, seconds=_QUIET_SECONDS)
    scenario.resume()


def _is_paused(scenario: Scenario) -> bool:
    found = condition(control_plane(scenario), "Paused")
    return found is not None and found["status"] == "True"


def _check_control_plane(scenario: Scenario, replicas: int) -> None:
    """It reports its replicas and their version."""

    def reported() -> bool:
        status = control_plane(scenario)["status"]
        counters = [status.get(name) for name in ("replicas", "readyReplicas", "upToDateReplicas")]
        if counters != [replicas] * 3 or status.get("version") != KUBERNETES:
            raise NotYet(f"status: {status}")
        return bool(status["initialization"]["controlPlaneInitialized"])

    eventually(reported, what=f"{replicas} replicas reported")


def _check_data(scenario: Scenario) -> None:
    """Each server runs the data of its Machine; one begins the cluster, all others join it."""
    configurations = {each.name: read_configuration(each) for each in scenario.servers()}
    begun = [name for name, each in configurations.items() if each.cluster]
    assert len(begun) == 1, f"begun by {begun}"
    assert all(each.cluster or each.token for each in configurations.values())
    inside = {name for name, each in configurations.items() if each.control_plane}
    assert inside == {_name(machine) for machine in members(scenario)}


def _name(machine: JSON) -> str:
    return str(machine["metadata"]["name"])
