"""`capsmith conformance` passes on a generated provider, and names the rule that a fault violates.

All managers run in one management cluster, each for its own namespace.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree

import pytest

from capsmith import resources
from capsmith.behaviour.checks import INFRASTRUCTURE
from capsmith.behaviour.contract import CoreObjects
from capsmith.behaviour.model import Outcome, Result, Selection, Timing
from capsmith.behaviour.objects import TEMPLATE_NAME, ProviderObjects, provider_objects
from capsmith.behaviour.run import run_checks
from capsmith.behaviour.servers import Installation, Servers
from capsmith.behaviour.session import Session
from capsmith.contract.load import load_rules
from capsmith.management.cluster import Base
from capsmith.management.manager import ProviderManager
from capsmith.management.release import ProviderRelease
from capsmith.management.wait import eventually
from tests.e2e.faulty_manager import FAULTS
from tests.e2e.harness.cloud import VARIABLE
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.provider import build_provider
from tests.repositories import import_path

_SERIES = "v1.13"
_CONTRACT: Final = "v1beta2"
_THREADS = 4
_GOOD = "good"
"""The namespace of the manager without a fault."""
_FAULT_TEST = "test_a_fault_is_named"
_ROLES = {
    "HomelabCluster": "InfraCluster",
    "HomelabMachine": "InfraMachine",
    "HomelabMachineTemplate": "InfraMachineTemplate",
}
# A violation that is a missing state costs the whole patience, so it is short for that state.
_SHORT = 5.0
_RECOMMENDED = {"machine-ready", "pause-condition", "ready-steady"}
"""The checks of rules that say SHOULD."""


class Expected(NamedTuple):
    """What a fault leads to."""

    check: str
    rule: str
    message: str
    """A part of what is reported."""
    other_checks: tuple[str, ...] = ()
    """Those that drive the objects into the state in which the fault shows."""
    missing: str = ""
    """The object whose expected state never comes, if that is the violation."""


EXPECTED = {
    "cluster_without_owner": Expected("cluster-waits-for-owner", "IC-19", "no Cluster owns"),
    "machine_without_owner": Expected("machine-waits-for-owner", "IM-19", "no Machine owns"),
    "no_wait_for_cluster": Expected(
        "machine-waits-for-cluster", "IM-19", "infrastructure of its cluster is not provisioned"
    ),
    "no_wait_for_data": Expected("machine-waits-for-data", "IM-19", "no bootstrap data"),
    "no_provider_id": Expected("machine-provider-id", "IM-01", "provider ID is missing"),
    "shared_provider_id": Expected(
        "provider-id-constant", "IM-01", "is that of", ("machine-failure-domain",)
    ),
    "forgotten_work": Expected(
        "restart", "SM-09", "never became provisioned", missing="main-interrupted"
    ),
    "changed_spec": Expected("spec-kept", "TP-06", "changed memoryMiB from 512 to 1024"),
    "no_endpoint": Expected("cluster-endpoint", "IC-02", "endpoint is missing"),
    "wrong_failure_domain": Expected("machine-failure-domain", "IM-06", "elsewhere"),
    "no_finalizer": Expected("finalizer-first", "SM-08", "no finalizer"),
    "finalizer_stays": Expected("delete-machine", "IM-25", "it stays", missing="main-deleted"),
    "ignored_pause": Expected("pause-annotation", "SM-01", "although the object has"),
    "ignored_external_management": Expected("cluster-externally-managed", "IC-15", "managed-by"),
    "deletion_while_paused": Expected("pause-deletion", "MV-08", "deletion of a paused object"),
    "no_ready": Expected("machine-ready", "IM-10", "no condition Ready"),
    "no_paused": Expected("pause-condition", "ST-08", "is not True", missing="main-paused"),
    "varying_message": Expected("ready-steady", "ST-06", "varies", ("restart",)),
    "not_provisioned_while_paused": Expected(
        "provisioned-once", "IM-03", "later not", ("pause-deletion",)
    ),
    "failing_early_deletion": Expected("delete-early", "IM-25", "but stays", missing="external-0"),
}


class Site:
    """One management cluster with the installed release, and managers on demand."""

    def __init__(self, provider: ProviderUnderTest, base: Base, folder: Path) -> None:
        self._provider = provider
        self._folder = folder
        release = ProviderRelease(provider.out, provider.version)
        installed = Installation(
            release,
            (sys.executable, "-m", provider.package),
            self._environment(_GOOD),
            (f"--namespace={_GOOD}",),
            {},
            provider.prerequisites,
        )
        self.servers = Servers(base, _SERIES, installed, folder)
        self._component = release.component("infrastructure")
        self.objects: ProviderObjects

    @property
    def release(self) -> Path:
        return self._provider.out

    def start(self) -> None:
        self.servers.start()
        management = self.servers.first.management
        options = {
            "infrastructure": self._component.name,
            "kubernetes-version": "v1.34.4",
            "control-plane-machine-count": 1,
            "worker-machine-count": 1,
            "target-namespace": "default",
        }
        documents = self.servers.clusterctl.generate(
            management.kubeconfig, TEMPLATE_NAME, options, {}
        )
        self.objects = provider_objects(documents, _ROLES)

    def manager(self, name: str, *command: str) -> ProviderManager:
        argv = [sys.executable, *command, self._provider.package]
        return ProviderManager(
            argv,
            self._component,
            self.servers.first.management,
            self._environment(name),
            [f"--namespace={name}"],
            name,
        )

    def _environment(self, name: str) -> dict[str, str]:
        return {
            "PYTHONPATH": import_path(self._provider.repository),
            VARIABLE: str(self._folder / f"cloud-{name}"),
        }

    def session(
        self, name: str, manager: ProviderManager, expected: Expected | None = None
    ) -> Session:
        management = self.servers.first.management
        has_short_waits = expected is not None and expected.missing
        session = ImpatientSession(
            client=management.client,
            core=CoreObjects(_CONTRACT, name),
            objects=self.objects,
            contract=_CONTRACT,
            timing=Timing(cleanup=_SHORT) if has_short_waits else Timing(),
            manager=manager,
            kubeconfig=management.apiserver.kubeconfig_text,
        )
        session.expected = expected
        return session


class ImpatientSession(Session):
    """A session that soon gives up on the one state that a fault prevents."""

    expected: Expected | None = None

    def patience(self, name: str, what: str) -> float:
        if self.expected is None:
            return super().patience(name, what)
        awaited = name == self.expected.missing and self.expected.message in what
        return _SHORT if awaited else super().patience(name, what)


@pytest.fixture(scope="module")
def site(base: Base) -> Iterator[Site]:
    folder = base.folder / "conformance"
    made = Site(build_provider("homelab", _CONTRACT, folder), base, folder)
    with ExitStack() as ends:
        ends.callback(made.servers.stop)
        made.start()
        yield made


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, site: Site
) -> Iterator[dict[str, Future[tuple[Result, ...]]]]:
    """The runs of the faulty managers, side by side.

    A child process ends with the thread that started it, so the threads last for the module.
    """
    script = str(Path(__file__).with_name("faulty_manager.py"))
    rules = load_rules(resources.schemas(), _CONTRACT)

    def run(fault: str) -> tuple[Result, ...]:
        expected, name = EXPECTED[fault], fault.replace("_", "-")
        manager = site.manager(name, "-P", script, fault)
        try:
            manager.start()
            session = site.session(name, manager, expected)
            selection = Selection(frozenset({expected.check, *expected.other_checks}))
            return run_checks(session, INFRASTRUCTURE, rules, selection)
        finally:
            manager.stop()

    tests = {item.name for item in request.session.items}
    selected = [fault for fault in FAULTS if f"{_FAULT_TEST}[{fault}]" in tests]
    with ThreadPoolExecutor(_THREADS) as executor:
        yield {fault: executor.submit(run, fault) for fault in selected}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named(runs: dict[str, Future[tuple[Result, ...]]], fault: str) -> None:
    results = runs[fault].result()

    expected = EXPECTED[fault]
    (result,) = (each for each in results if each.name == expected.check)
    outcome = Outcome.WARNING if expected.check in _RECOMMENDED else Outcome.FAILED
    assert result.outcome is outcome, results
    assert expected.rule in result.rules
    assert expected.message in result.message
    assert result.subject
    assert result.links


def test_a_generated_provider_passes(site: Site) -> None:
    rules = load_rules(resources.schemas(), _CONTRACT)
    session = site.session(_GOOD, site.servers.first.manager)
    session.mover = site.servers

    results = run_checks(session, INFRASTRUCTURE, rules)

    assert [each for each in results if each.outcome is not Outcome.PASSED] == []
    assert len(results) == len(INFRASTRUCTURE)


def test_a_given_management_cluster(site: Site, tmp_path: Path) -> None:
    """The provider runs already; what only a cluster of its own allows is skipped."""
    management = site.servers.first.management
    manager = site.manager("conformance-homelab", "-m")
    command = [sys.executable, "-m", "capsmith", "conformance", str(site.release)]
    command += ["--kubeconfig", str(management.kubeconfig), "--format", "junit"]
    command += ["--select", "cluster-ready,machine-provider-id,remediation,restart,move"]
    try:
        manager.start()
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    finally:
        manager.stop()

    assert done.returncode == 0, done.stdout + done.stderr
    suite = ElementTree.fromstring(done.stdout)
    skipped = {case.get("name") for case in suite if case.find("skipped") is not None}
    assert {case.get("name") for case in suite} - skipped == {
        "cluster-ready",
        "machine-provider-id",
    }
    assert skipped == {"remediation", "restart", "move"}
    eventually(
        lambda: management.client.find("v1", "Namespace", "conformance-homelab") is None,
        what="the namespace deleted",
    )
