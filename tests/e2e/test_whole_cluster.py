"""A cluster of generated providers only: infrastructure, bootstrap, control plane."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith import resources
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from capsmith.commands.conformance import run
from capsmith.commands.conformance_release import ConformanceRequest
from capsmith.contract.load import load_rules
from capsmith.judge.running.checks import WHOLE_CLUSTER
from capsmith.judge.running.model import CheckOutcome
from capsmith.judge.running.objects import TEMPLATE_NAME
from tests import checkout
from tests.e2e.harness.cloud import VARIABLE, SimulatedCloud
from tests.e2e.harness.report import Report
from tests.e2e.processes import running_with
from tests.e2e.releases import KUBERNETES_NEXT
from tests.e2e.scenario import Scenario, wait_moved_away
from tests.e2e.topology import change_templates, wait_reconciled, wait_rolled
from tests.e2e.whole import (
    WHOLE_NEWEST,
    WHOLE_OLDEST,
    WHOLE_SECONDS,
    Watch,
    WholeStack,
    check_counters,
    check_rest,
    check_variable_arrived,
    control_plane,
    crash,
    delete_and_check,
    health_check,
    members,
    secrets_of,
    untouched,
    wait_available,
    wait_replaced,
    workers,
)
from tests.exhaustive import exhaustive
from tests.repositories import import_path

_QUIET_SECONDS = 3.0
_REMEDIATE = "cluster.x-k8s.io/remediate-machine"


# On the oldest core, test_contract_upgrade.py and test_contract_core_first.py run clusters of
# generated providers of contract v1beta1.
@pytest.fixture(scope="module", params=[WHOLE_NEWEST, *exhaustive(WHOLE_OLDEST)], ids=str)
def whole(request: pytest.FixtureRequest, base: Base, report: Report) -> Iterator[WholeStack]:
    made = WholeStack(base, request.param, report)
    yield made
    made.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, whole: WholeStack) -> Iterator[Scenario]:
    with whole.scenario(request.node.originalname) as made:
        yield made


def test_whole_life(scenario: Scenario, whole: WholeStack) -> None:
    """Each phase has its crash: all managers die at a moment of chance and come again.

    Proves: BC-06, BC-12, CP-02, CP-03, CP-04, CP-05, CP-06, CP-19, CP-21, CP-22, CP-34.
    Proves: SEC-01, SM-09.
    """
    report, name, site = scenario.stack.report, scenario.stack.name, whole.site
    with report.phase(name, "whole: create 3 control planes, 2 workers, with a crash"):
        scenario.create(scenario.render(control_planes=3, workers=2))
        crash(site, within=8.0)
        scenario.wait_running(5, timeout=WHOLE_SECONDS)
        wait_available(scenario)
    check_counters(scenario, 3)
    for replicas in (5, 1):
        with report.phase(name, f"whole: workers to {replicas}, with a crash"):
            scenario.scale_workers(replicas)
            crash(site, within=1.0)
            scenario.wait_running(3 + replicas)
    with report.phase(name, "whole: control plane 3 to 1, with a crash"):
        _scale_control_plane(scenario, 1)
        crash(site, within=2.0)
        scenario.wait_running(2, timeout=WHOLE_SECONDS)
    with report.phase(name, "whole: control plane 1 to 3, with a crash"):
        _scale_control_plane(scenario, 3)
        crash(site, within=2.0)
        scenario.wait_running(4, timeout=WHOLE_SECONDS)
    check_counters(scenario, 3)
    with report.phase(name, "whole: upgrade of the control plane, with a crash"):
        _upgrade_control_plane(scenario, whole)
    with report.phase(name, "whole: pause, delete a member, crash, unpause"):
        _pause_protects(scenario, whole)
    with report.phase(name, "whole: delete, with a crash"):
        scenario.client.delete(scenario.cluster())
        crash(site, within=3.0)
        delete_and_check(scenario)


def test_whole_conforms(whole: WholeStack) -> None:
    """One run has the checks of each role of the release, under both contracts."""
    stack, contract = whole.stack, whole.combination.contract
    of_whole = {check.name for check in WHOLE_CLUSTER}
    of_others = {"machine-provider-id", "claim-allocated", "pool-in-use"}
    request = ConformanceRequest(
        kubeconfig=whole.site.management.kubeconfig,
        core=whole.combination.series,
        select=(*of_whole, *of_others),
        timeout=WHOLE_SECONDS,
    )
    namespace = f"conformance-{stack.provider.name}-2"
    with (
        whole.unmade_scenario(TEMPLATE_NAME, namespace),
        stack.report.phase(stack.name, "whole: conformance"),
    ):
        report = run(stack.provider.out, request, print, lambda result: None)
    good = (CheckOutcome.PASSED, CheckOutcome.SKIPPED)
    assert [each for each in report.results if each.outcome not in good] == []
    passed = {each.name for each in report.results if each.outcome is CheckOutcome.PASSED}
    assert of_others < passed
    assert report.contract == contract
    rules = load_rules(resources.schemas(), contract)
    assert len(report.results) == len(of_others) + sum(
        any(rule in rules for rule in check.rules) for check in WHOLE_CLUSTER
    )


# test_conformance_command.py ends a run by a signal, and test_lab.py one with its servers.
@pytest.mark.exhaustive
@pytest.mark.parametrize("whole", [WHOLE_NEWEST], ids=str, indirect=True)
def test_an_interrupted_run_leaves_nothing(whole: WholeStack, tmp_path: Path) -> None:
    """A run starts all managers and boots the cluster; Ctrl-C ends and removes all of it."""
    provider, cloud = whole.stack.provider, SimulatedCloud(tmp_path / "cloud")
    environment = {
        "PYTHONPATH": import_path(provider.repository),
        VARIABLE: str(cloud.folder),
        "CAPSMITH_SIMULATED_ENDPOINT": f"127.0.0.1:{free_port()}",
    }
    command = [sys.executable, "-m", "capsmith", "conformance", str(provider.out)]
    command += ["--manager", f"{sys.executable} -m {provider.package}"]
    command += [f"--env={name}={value}" for name, value in environment.items()]
    command += ["--select", "control-plane-initialized,whole-deletion"]
    command += ["--logs", str(tmp_path / "logs"), "--timeout", str(WHOLE_SECONDS)]
    with subprocess.Popen(
        command,
        env=checkout.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        created = cloud.servers()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()

    assert first.startswith("passed: control-plane-initialized"), first + rest + errors
    assert created
    assert (process.returncode, errors) == (1, "interrupted\n")
    assert cloud.servers() == []
    assert cloud.clusters() == []
    assert running_with(str(tmp_path)) == []


def test_unhealthy(scenario: Scenario, whole: WholeStack) -> None:
    """A Machine that is marked unhealthy is replaced, member or worker.

    Proves: CP-31.
    """
    report, name = scenario.stack.report, scenario.stack.name
    scenario.create(scenario.render(control_planes=3, workers=1))
    scenario.wait_running(4, timeout=WHOLE_SECONDS)
    scenario.client.apply(health_check(scenario))
    for what, machine in (("member", members(scenario)[0]), ("worker", workers(scenario)[0])):
        with report.phase(name, f"whole: an unhealthy {what} is replaced, with a crash"):
            annotations = {"annotations": {_REMEDIATE: ""}}
            scenario.client.patch(machine, {"metadata": annotations})
            crash(whole.site, within=2.0)
            wait_replaced(scenario, machine)
            scenario.wait_running(4, timeout=WHOLE_SECONDS)
    assert len(members(scenario)) == 3
    delete_and_check(scenario)


def test_whole_topology(scenario: Scenario, whole: WholeStack) -> None:
    """A class with a variable and a patch; the control plane is upgraded before the workers.

    Proves: CP-08, CP-09, CP-10, CP-11, CP-12, CP-13, CP-28, CP-29, TP-09, TP-10, BC-07.
    """
    report, name = scenario.stack.report, scenario.stack.name
    flavor = scenario.stack.provider.topology_flavor
    documents = scenario.render(control_planes=3, workers=2, flavor=flavor)
    with report.phase(name, "whole: topology of 3 and 2, with a crash"):
        scenario.create(documents)
        crash(whole.site, within=8.0)
        machines = scenario.wait_running(5, timeout=WHOLE_SECONDS)
        wait_reconciled(scenario)
    check_rest(scenario)
    check_variable_arrived(scenario, documents, machines)
    with report.phase(name, "whole: Kubernetes upgrade of the topology, with a crash"):
        topology = {"topology": {"version": KUBERNETES_NEXT}}
        scenario.client.patch(scenario.cluster(), {"spec": topology})
        _control_plane_first(scenario, whole)
        machines = scenario.wait_running(5, timeout=WHOLE_SECONDS)
        wait_reconciled(scenario)
    with report.phase(name, "whole: a template change rolls all machines, with a crash"):
        change_templates(scenario, documents)
        crash(whole.site, within=4.0)
        wait_rolled(scenario, machines, timeout=WHOLE_SECONDS)
    with report.phase(name, "whole: delete a topology"):
        delete_and_check(scenario)


def test_move_there_and_back(scenario: Scenario, whole: WholeStack) -> None:
    """Proves: BC-05, MV-02, MV-06, MV-08, SM-06, SEC-05, ST-11."""
    stack, report = whole.stack, whole.stack.report
    target = stack.add_site("second")
    scenario.create(scenario.render(control_planes=3, workers=2))
    scenario.wait_running(5, timeout=WHOLE_SECONDS)
    journal, secrets = scenario.journal(), secrets_of(scenario)
    home, away = scenario.management, target.management
    sites = {home.name: whole.site, away.name: target}
    for label, source, goal in (("there", home, away), ("back", away, home)):
        with report.phase(stack.name, f"whole: clusterctl move {label}"):
            stack.clusterctl.move(source.kubeconfig, goal.kubeconfig, scenario.namespace)
        wait_moved_away(scenario)
        scenario.management = goal
        crash(sites[goal.name], within=2.0)
        with report.phase(stack.name, f"whole: running again, {label}"):
            scenario.wait_running(5, timeout=WHOLE_SECONDS)
            wait_available(scenario)
        steadily(lambda: untouched(scenario, journal), seconds=_QUIET_SECONDS)
        assert secrets_of(scenario) == secrets
    scenario.scale_workers(3)
    scenario.wait_running(6)
    delete_and_check(scenario)


def _scale_control_plane(scenario: Scenario, replicas: int) -> None:
    """By the scale subresource, as `kubectl scale` does."""
    scenario.client.patch(control_plane(scenario), {"spec": {"replicas": replicas}}, "scale")


def _upgrade_control_plane(scenario: Scenario, whole: WholeStack) -> None:
    old = {each["metadata"]["uid"] for each in members(scenario)}
    scenario.client.patch(control_plane(scenario), {"spec": {"version": KUBERNETES_NEXT}})
    crash(whole.site, within=3.0)

    def rolled() -> bool:
        found = members(scenario)
        left = [each["metadata"]["name"] for each in found if each["metadata"]["uid"] in old]
        if left or len(found) != 3:
            raise NotYet(f"old: {left}, all: {len(found)}")
        return True

    def enough(inside: list[JSON], _: list[JSON]) -> None:
        living = [each for each in inside if "deletionTimestamp" not in each["metadata"]]
        if not 3 <= len(living) <= 4:
            pytest.fail(f"{len(living)} members during a rollout of 3 with one more at most")

    Watch(scenario, enough).until(rolled, timeout=WHOLE_SECONDS, what="all members replaced")
    scenario.wait_running(4, timeout=WHOLE_SECONDS)
    assert {each["spec"]["version"] for each in members(scenario)} == {KUBERNETES_NEXT}
    check_counters(scenario, 3)
    eventually(
        lambda: control_plane(scenario)["status"].get("version") == KUBERNETES_NEXT,
        what="the version of the control plane",
    )


def _control_plane_first(scenario: Scenario, whole: WholeStack) -> None:
    crash(whole.site, within=3.0)

    def upgraded() -> bool:
        versions = [each["spec"]["version"] for each in scenario.machines()]
        if set(versions) != {KUBERNETES_NEXT} or len(versions) != 5:
            raise NotYet(f"versions: {versions}")
        return True

    def ordered(inside: list[JSON], outside: list[JSON]) -> None:
        behind = any(each["spec"]["version"] != KUBERNETES_NEXT for each in inside)
        ahead = [each for each in outside if each["spec"]["version"] == KUBERNETES_NEXT]
        if behind and ahead:
            pytest.fail(f"workers before the control plane: {len(ahead)}")

    Watch(scenario, ordered).until(upgraded, timeout=WHOLE_SECONDS, what="all machines upgraded")


def _pause_protects(scenario: Scenario, whole: WholeStack) -> None:
    member = members(scenario)[0]
    scenario.pause()
    before = scenario.journal()
    scenario.client.delete(member)
    crash(whole.site, within=1.0)
    whole.site.wait_leading()
    steadily(lambda: untouched(scenario, before), seconds=_QUIET_SECONDS)
    scenario.resume()
    wait_replaced(scenario, member)
    scenario.wait_running(4, timeout=WHOLE_SECONDS)
