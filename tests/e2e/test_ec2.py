"""The example for EC2, whose author's code calls an SDK, with moto in the place of AWS."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.chain import (
    Chain,
    add_chain,
    find,
    record_deletions,
    remove_forcibly,
    wait_gone,
    wait_in_use,
)
from tests.e2e.fakes.bootstrap import bootstrap_data
from tests.e2e.harness.moto import MotoCloud
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import (
    Scenario,
    condition,
    infrastructure_check,
    one_scenario,
    wait_nothing_left,
)
from tests.e2e.stack import Combination, Site, Stack

COMBINATION = Combination(NEWEST, "v1beta2", "ec2", f"{NEWEST}-ec2")
IMAGES = Path(__file__).parents[2] / "examples" / "ec2" / "tests" / "amis.json"
REGION = "us-east-1"
_CHECKED = {"example.com/health-check": "true"}
_OFTEN = "--sync-period=3s"
"""Nothing tells a manager that an instance has ended: it looks."""
_BETWEEN = {"roleARN": "arn:aws:iam::210987654321:role/between"}
"""A role of another account: what is created with it alone is not in the account of the tests."""


@dataclass(frozen=True)
class Ec2:
    """The stack, and moto behind it."""

    stack: Stack
    site: Site
    cloud: MotoCloud


@pytest.fixture(scope="module")
def ec2(base: Base, workload: ApiServer, report: Report) -> Iterator[Ec2]:
    folder = base.folder / str(COMBINATION)
    with report.phase(str(COMBINATION), "build the provider"):
        provider = build_provider(COMBINATION.example, COMBINATION.contract, folder)
    provider = replace(provider, flags=(*provider.flags, _OFTEN))
    cloud = MotoCloud(folder / "cloud", IMAGES, REGION)
    with ExitStack() as ends:
        ends.callback(cloud.process.stop)
        cloud.start()
        environment = {"AWS_ENDPOINT_URL": cloud.url}
        stack = Stack(base, workload, COMBINATION, provider, report, environment, cloud)
        ends.callback(stack.stop)
        yield Ec2(stack, stack.start(), cloud)


@pytest.fixture
def scenario(request: pytest.FixtureRequest, ec2: Ec2) -> Iterator[Scenario]:
    with one_scenario(ec2.stack, ec2.site, request.node.originalname) as made:
        yield made


def test_life_cycle(scenario: Scenario, ec2: Ec2) -> None:
    """Proves: IM-01, IM-25, SM-09."""
    report, stack = scenario.stack.report, scenario.stack.name
    with report.phase(stack, "create: 1 control plane, 2 workers, killed meanwhile"):
        scenario.create(scenario.render(control_planes=1, workers=2))
        _kill_once_there_are(ec2, 1)
        scenario.wait_running(3)
    for server in scenario.servers():
        assert ec2.cloud.user_data(server) == bootstrap_data(scenario.name, server.name)
    group_id = _security_group_of_instances(scenario, ec2)
    with report.phase(stack, "scale workers 2 -> 4, killed meanwhile"):
        scenario.scale_workers(4)
        _kill_once_there_are(ec2, 4)
        scenario.wait_running(5)
    with report.phase(stack, "an instance is terminated, its machine replaced"):
        _replace_terminated(scenario, ec2)
    created = [event.id for event in scenario.journal()]
    assert len(created) == len(set(created)) == 6, created
    with report.phase(stack, "delete"):
        scenario.delete()
        # Among the provider's objects are Ec2SecurityGroups.
        wait_nothing_left(scenario)
    assert group_id not in ec2.cloud.security_groups()


def _security_group_of_instances(scenario: Scenario, ec2: Ec2) -> str:
    """Return the id of the group behind the cluster's Ec2SecurityGroup; all instances use it."""
    reference = scenario.cluster()["spec"]["infrastructureRef"]
    version, kind, name = scenario.stack.dialect.resolve(scenario.client, reference)
    cluster = scenario.client.get(version, kind, name, scenario.namespace)
    group = scenario.client.get(version, "Ec2SecurityGroup", name, scenario.namespace)
    ready = condition(group, "Ready")
    assert ready is not None
    assert ready["status"] == "True", ready
    assert [each["uid"] for each in group["metadata"]["ownerReferences"]] == [
        cluster["metadata"]["uid"]
    ]
    group_id = str(group["status"]["groupID"])
    assert group_id == cluster["status"]["securityGroupID"]
    assert ec2.cloud.security_groups()[group_id] == {each.id for each in scenario.servers()}
    return group_id


def _kill_once_there_are(ec2: Ec2, instances: int) -> None:
    """Kill the manager as soon as it has created so many; others are on their way."""

    def created() -> bool:
        return len(ec2.cloud.journal()) >= instances

    eventually(created, what=f"{instances} instances", interval=0.01)
    ec2.site.controllers.kill()
    ec2.site.controllers.start()


def _replace_terminated(scenario: Scenario, ec2: Ec2) -> None:
    """The machine of a terminated instance is reported, then replaced by a health check."""
    server = next(each for each in scenario.servers() if "-md-" in each.name)
    ec2.cloud.terminate(server)
    eventually(lambda: _reported(scenario, server), what="the instance is missed")
    scenario.client.patch(_machine(scenario, server), {"metadata": {"labels": _CHECKED}})
    # Machines that come up have the condition too, for longer than this test waits: the check
    # selects only the old one.
    scenario.client.apply(infrastructure_check(scenario, _CHECKED))
    eventually(lambda: not _is_there(scenario, server), what="its machine is gone")
    scenario.wait_running(5)


def _reported(scenario: Scenario, server: Server) -> bool:
    machine = _machine(scenario, server)
    found = condition(scenario.infrastructure_of(machine), "Ready")
    mirrored = condition(machine, "InfrastructureReady")
    for each in (found, mirrored):
        if each is None or (each["status"], each["reason"]) != ("False", "InstanceTerminated"):
            raise NotYet(f"Ready: {found}, InfrastructureReady: {mirrored}")
    status = scenario.infrastructure_of(machine)["status"]
    assert status["initialization"]["provisioned"] is True
    return bool(status["instanceState"] == "terminated")


def _is_there(scenario: Scenario, server: Server) -> bool:
    return server.name in {each["metadata"]["name"] for each in scenario.machines()}


def _machine(scenario: Scenario, server: Server) -> JSON:
    return scenario.client.get(scenario.core, "Machine", server.name, scenario.namespace)


# tests/runtime/scenarios/infrastructure/test_source_identities.py has such chains, without core.
@pytest.mark.exhaustive
def test_sources_are_kept_while_the_identity_between_them_is_missing(
    scenario: Scenario, ec2: Ec2
) -> None:
    """A user removes it by force; the manager is killed, and the cluster deleted meanwhile."""
    report, stack = scenario.stack.report, scenario.stack.name
    with report.phase(stack, "chain: create"):
        chain, documents = _create_with_chain(scenario, workers=0)
    with record_deletions(scenario, chain) as deletions:
        with report.phase(stack, "chain: delete without its middle"):
            remove_forcibly(scenario, chain.middle)
            ec2.site.controllers.kill()
            for each in (chain.secret, chain.base, chain.role, scenario.cluster()):
                scenario.client.delete(each)
            ec2.site.controllers.start()
            for each in (chain.base, chain.role):
                wait_in_use(scenario, each)
            eventually(lambda: _waits_for_identity(scenario), what="the machine waits")
        assert find(scenario, chain.secret) is not None
        assert len(scenario.servers()) == 1
        with report.phase(stack, "chain: its middle is back"):
            scenario.client.apply(chain.middle)
            wait_nothing_left(scenario)
            wait_gone(scenario, chain.role, chain.base, chain.secret, *documents)
        scenario.client.delete(chain.middle)
        wait_gone(scenario, chain.middle)
        deletions.check_order(chain)


@pytest.mark.exhaustive
def test_a_secret_in_deletion_opens_sessions(scenario: Scenario, ec2: Ec2) -> None:
    """A manager that starts after the deletion of the Secret assumes all roles of the chain."""
    report, stack = scenario.stack.report, scenario.stack.name
    with report.phase(stack, "chain: create"):
        chain, documents = _create_with_chain(scenario, workers=1)
    with record_deletions(scenario, chain) as deletions:
        ec2.site.controllers.kill()
        scenario.client.delete(chain.secret)
        ec2.site.controllers.start()
        with report.phase(stack, "chain: scale workers 1 -> 2 without a Secret"):
            scenario.scale_workers(2)
            scenario.wait_running(3)
        assert find(scenario, chain.secret) is not None
        with report.phase(stack, "chain: delete the cluster"):
            scenario.delete()
            wait_nothing_left(scenario)
            wait_gone(scenario, chain.secret)
        for each in chain.objects:
            scenario.client.delete(each)
        wait_gone(scenario, *chain.objects, *documents)
        deletions.check_order(chain)


@pytest.mark.exhaustive
def test_a_chain_is_deleted_together_with_its_cluster(scenario: Scenario, ec2: Ec2) -> None:
    """All objects at once, identities first, one of them in foreground, and a crash after that."""
    report, stack = scenario.stack.report, scenario.stack.name
    with report.phase(stack, "chain: create"):
        chain, documents = _create_with_chain(scenario, workers=1)
    with record_deletions(scenario, chain) as deletions:
        with report.phase(stack, "chain: delete everything"):
            for each in (chain.role, chain.middle, chain.secret, *documents):
                scenario.client.delete(each)
            scenario.client.delete(chain.base, "Foreground")
            ec2.site.controllers.kill()
            ec2.site.controllers.start()
            wait_nothing_left(scenario)
            wait_gone(scenario, *chain.objects, *documents)
        deletions.check_order(chain)


def _create_with_chain(scenario: Scenario, workers: int) -> tuple[Chain, list[JSON]]:
    """Create a cluster that uses a chain of roles; return what the user applied."""
    chain = add_chain(scenario, _BETWEEN)
    documents = scenario.render(control_planes=1, workers=workers)
    chain.use_in(scenario, documents)
    scenario.create(documents)
    scenario.wait_running(1 + workers)
    chain.wait_kept(scenario)
    return chain, documents


def _waits_for_identity(scenario: Scenario) -> bool:
    (machine,) = scenario.machines()
    obj = scenario.infrastructure_of(machine)
    ready = condition(obj, "Ready")
    if ready is None or ready["reason"] != "IdentityNotFound":
        raise NotYet(f"Ready: {ready}")
    return "deletionTimestamp" in obj["metadata"]
