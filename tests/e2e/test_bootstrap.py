"""A generated bootstrap provider under the real core, with a control plane that begins at once."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from functools import partial

import pytest
import yaml

from capsmith.clusters.lab.simulated.kubelet import Server
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.bootstrap_data import (
    CONTROL_PLANE,
    add_pool,
    config_of_name,
    config_template,
    configurations,
    control_plane_names,
    data_secrets,
    deployment_of,
    locks,
    settings_of,
    value_of,
)
from tests.e2e.fakes.control_plane import ca_key
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.harness.report import Report
from tests.e2e.provider import build_provider
from tests.e2e.releases import KUBERNETES_NEXT, NEWEST, OLDEST, PREVIOUS
from tests.e2e.scenario import Scenario, condition, one_scenario, wait_nothing_left
from tests.e2e.stack import Combination, Site, Stack

# test_whole_cluster.py boots clusters by a generated bootstrap provider and runs its checks, and
# tests/runtime/scenarios/bootstrap has the lock, pools and crashes.
pytestmark = pytest.mark.exhaustive

_SECTIONS = ("infrastructure", "bootstrap")


def _combination(series: str, contract: ContractVersion) -> Combination:
    name = f"bootstrap-{series}-{contract}"
    return Combination(series, contract, "complete", name, _SECTIONS)


_COMBINATIONS = (
    _combination(NEWEST, "v1beta2"),
    _combination(NEWEST, "v1beta1"),
    _combination(OLDEST, "v1beta1"),
    *(_combination(series, "v1beta2") for series in PREVIOUS),
)
_PAUSED = "cluster.x-k8s.io/paused"
_QUIET_SECONDS = 3.0
_CACHE_SECONDS = 2.0


@pytest.fixture(scope="module", params=_COMBINATIONS, ids=str)
def bootstrap(
    request: pytest.FixtureRequest, base: Base, workload: ApiServer, report: Report
) -> Iterator[tuple[Stack, Site]]:
    combination: Combination = request.param
    with report.phase(str(combination), "build the provider"):
        folder = base.folder / str(combination)
        provider = build_provider(
            combination.example, combination.contract, folder, combination.sections
        )
    stack = Stack(base, workload, combination, provider, report)
    try:
        yield stack, stack.start()
    finally:
        stack.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, bootstrap: tuple[Stack, Site]) -> Iterator[Scenario]:
    with one_scenario(*bootstrap, request.node.originalname) as made:
        yield made


def test_bootstrap(scenario: Scenario, bootstrap: tuple[Stack, Site]) -> None:
    """The lock holds while three control plane machines come at once and the manager dies.

    Proves: BC-01, BC-02, BC-03, BC-04, BC-06, BC-07, BC-09, BC-12, BC-13, BC-14, RB-03, SM-09.
    """
    report, name, (_, site) = scenario.stack.report, scenario.stack.name, bootstrap
    with report.phase(name, "bootstrap: 3 control planes, 2 workers, with a crash"):
        scenario.create(scenario.render(control_planes=3, workers=2))
        _one_begins(scenario, site)
        machines = scenario.wait_running(5)
    _check_data(scenario, machines)
    with report.phase(name, "bootstrap: workers 2 -> 6, with a crash"):
        scenario.scale_workers(6)
        _crash(site, within=1.0)
        machines = scenario.wait_running(9)
    _check_data(scenario, machines)
    with report.phase(name, "bootstrap: pause, unpause"):
        site.managers["bootstrap"].wait_leading()
        _pause_holds(scenario)
    with report.phase(name, "bootstrap: delete"):
        scenario.delete()
        _check_nothing_left(scenario)


def test_bootstrap_moves(scenario: Scenario, bootstrap: tuple[Stack, Site]) -> None:
    """A move drops the status; Secrets and the machines that run their data stay.

    Proves: BC-05, BC-12, MV-02, MV-08, ST-11.
    """
    stack, _ = bootstrap
    target = stack.add_site("second")
    scenario.create(scenario.render(control_planes=1, workers=2))
    scenario.wait_running(3)
    before = data_secrets(scenario)
    with stack.report.phase(stack.name, "bootstrap: clusterctl move"):
        stack.clusterctl.move(
            scenario.management.kubeconfig, target.management.kubeconfig, scenario.namespace
        )
    scenario.management = target.management
    machines = scenario.wait_running(3)
    eventually(lambda: _all_created(scenario), what="the status is there again")
    eventually(lambda: not locks(scenario), what="no lock is there")
    steadily(lambda: _unchanged(scenario, before), seconds=_QUIET_SECONDS)
    _check_data(scenario, machines)
    scenario.scale_workers(3)
    _check_data(scenario, scenario.wait_running(4))
    scenario.delete()
    _check_nothing_left(scenario)


def test_bootstrap_pool(scenario: Scenario) -> None:
    """Core copies the name of a pool's Secret once, and what is in it follows the pool.

    The pool's infrastructure is of no kind: that is none of the bootstrap provider's business.

    Proves: BC-11, MP-13, MP-19.
    """
    scenario.create(scenario.render(control_planes=1, workers=0))
    scenario.wait_running(1)
    pool = add_pool(scenario)
    eventually(lambda: _named_secret(scenario, pool), what="core knows the Secret")
    first = data_secrets(scenario)[pool]
    machine_pool = scenario.client.get(scenario.core, "MachinePool", pool, scenario.namespace)
    version = {"spec": {"template": {"spec": {"version": KUBERNETES_NEXT}}}}
    scenario.client.patch(machine_pool, version)

    def followed() -> bool:
        secret = data_secrets(scenario)[pool]
        return bool(settings_of(value_of(secret))["version"] == KUBERNETES_NEXT)

    eventually(followed, what="data of the new version")
    assert data_secrets(scenario)[pool]["metadata"]["uid"] == first["metadata"]["uid"]
    found = config_of_name(scenario, pool)
    assert not {"failureReason", "failureMessage"} & found["status"].keys()
    scenario.delete()
    _check_nothing_left(scenario)


def _one_begins(scenario: Scenario, site: Site) -> None:
    """Until the control plane is there, one of its machines has data and all others wait."""
    killed = time.monotonic() + random.uniform(0, 4.0)
    alive = True
    dialect = scenario.stack.dialect

    def initialized() -> bool:
        nonlocal alive
        # Asked before the data are: what comes after it may join.
        done = dialect.control_plane_initialized(scenario.cluster())
        if alive and time.monotonic() > killed:
            site.managers["bootstrap"].kill()
            alive = False
            site.managers["bootstrap"].start()
        begun = [name for name in data_secrets(scenario) if name in control_plane_names(scenario)]
        done_now = dialect.control_plane_initialized(scenario.cluster())
        if len(begun) > 1 and not done and not done_now:
            pytest.fail(f"the lock does not hold: {begun}")
        if not done:
            raise NotYet(f"the control plane is not initialized, data have {begun}")
        return True

    eventually(initialized, what="control plane initialized", interval=0.05)
    if alive:
        _crash(site, within=0.5)


def _crash(site: Site, within: float) -> None:
    time.sleep(random.uniform(0, within))
    site.managers["bootstrap"].kill()
    site.managers["bootstrap"].start()


def _check_data(scenario: Scenario, machines: list[JSON]) -> None:
    """Each machine has run what its Secret says: nothing was made twice."""
    secrets, servers = data_secrets(scenario), {each.name: each for each in scenario.servers()}
    assert len(servers) == len(machines)
    for machine in machines:
        name = machine["spec"]["bootstrap"]["configRef"]["name"]
        assert machine["spec"]["bootstrap"]["dataSecretName"] == name
        config, secret = config_of_name(scenario, name), secrets[name]
        assert secret["type"] == "cluster.x-k8s.io/secret"
        (owner,) = secret["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (config["metadata"]["uid"], True)
        eventually(partial(_is_ready, scenario, machine), what=f"{name} is said to be ready")
        _check_server(scenario, machine, servers[_server_name(machine)], value_of(secret))
    begun = [server for server in servers.values() if "-node init" in (server.user_data or "")]
    assert len(begun) == 1, "one machine initialises the cluster, all others join it"
    eventually(lambda: not locks(scenario), what="the lock was given back")


def _is_ready(scenario: Scenario, machine: JSON) -> bool:
    config = config_of_name(scenario, machine["spec"]["bootstrap"]["configRef"]["name"])
    said = [condition(config, "Ready")]
    if scenario.stack.provider.contract == "v1beta2":
        name = machine["metadata"]["name"]
        now = scenario.client.get(scenario.core, "Machine", name, scenario.namespace)
        said.append(condition(now, "BootstrapConfigReady"))
    if any(each is None or each["status"] != "True" for each in said):
        raise NotYet(f"the configuration and its Machine say {said}")
    return True


def _check_server(scenario: Scenario, machine: JSON, server: Server, value: str) -> None:
    assert server.user_data == value
    document = yaml.safe_load(value)
    (command,) = document["runcmd"]
    assert "/run/cluster-api/bootstrap-success.complete" in command[-1]
    control_plane = CONTROL_PLANE in machine["metadata"]["labels"]
    assert (ca_key(scenario.name) in value) is control_plane
    taints = [] if control_plane else ["node.cluster.x-k8s.io/uninitialized:NoSchedule"]
    settings = settings_of(value)
    assert settings["taints"] == taints
    assert settings["version"] == machine["spec"]["version"]


def _pause_holds(scenario: Scenario) -> None:
    """A configuration that is born paused gets nothing until it is let go."""
    deployment = deployment_of(scenario)
    replicas = deployment["spec"]["replicas"]
    marks: JSON = {"metadata": {"annotations": {_PAUSED: ""}}}
    scenario.client.patch(config_template(scenario), {"spec": {"template": marks}})
    # Core makes configurations from what its cache has, and nothing tells what that is.
    time.sleep(_CACHE_SECONDS)
    known = set(data_secrets(scenario))
    scenario.scale_workers(replicas + 1)
    (config,) = eventually(
        lambda: configurations(scenario, lambda each: each["metadata"]["name"] not in known),
        what="the configuration of a new machine",
    )
    if scenario.stack.provider.contract == "v1beta2":
        name = config["metadata"]["name"]
        eventually(lambda: _is_paused(scenario, name), what="the pause is reported")
    steadily(lambda: _same_names(scenario, known), seconds=_QUIET_SECONDS)
    none: JSON = {"metadata": {"annotations": {_PAUSED: None}}}
    scenario.client.patch(config_template(scenario), {"spec": {"template": none}})
    scenario.client.patch(config, none)
    scenario.wait_running(len(known) + 1)


def _is_paused(scenario: Scenario, name: str) -> bool:
    found = condition(config_of_name(scenario, name), "Paused")
    return found is not None and found["status"] == "True"


def _check_nothing_left(scenario: Scenario) -> None:
    wait_nothing_left(scenario)
    eventually(lambda: not locks(scenario), what="no lock is left")


def _named_secret(scenario: Scenario, pool: str) -> bool:
    found = scenario.client.get(scenario.core, "MachinePool", pool, scenario.namespace)
    named = found["spec"]["template"]["spec"]["bootstrap"].get("dataSecretName")
    if named != pool:
        raise NotYet(f"the pool names {named}: {found.get('status')}")
    return True


def _all_created(scenario: Scenario) -> bool:
    for config in configurations(scenario):
        status = config.get("status", {})
        if status.get("dataSecretName") != config["metadata"]["name"]:
            raise NotYet(f"{config['metadata']['name']}: {status}")
    return True


def _unchanged(scenario: Scenario, before: dict[str, JSON]) -> None:
    now = data_secrets(scenario)
    assert {name: secret["data"] for name, secret in now.items()} == {
        name: secret["data"] for name, secret in before.items()
    }
    assert not locks(scenario)


def _same_names(scenario: Scenario, known: set[str]) -> None:
    assert set(data_secrets(scenario)) == known


def _server_name(machine: JSON) -> str:
    return str(machine["spec"]["infrastructureRef"]["name"])
