"""`capsmith conformance` passes on a generated provider, and names the rule that a fault violates.

All managers run in one management cluster, each for its own namespace.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from capsmith import resources
from capsmith.clusters.processes.cluster import Base
from capsmith.contract.load import load_rules
from capsmith.judge.running.checks import ADDRESSES, INFRASTRUCTURE
from capsmith.judge.running.model import CheckOutcome, CheckResult, Selection
from capsmith.judge.running.run import run_checks
from capsmith.judge.running.session import Session
from tests.checkout import environment
from tests.e2e.conformance_site import CONTRACT, GOOD, Expected, Site, Violation, homelab
from tests.e2e.faulty_manager import FAULTS
from tests.e2e.harness.cloud import SimulatedCloud
from tests.e2e.provider import build_described
from tests.exhaustive import exhaustive

_THREADS = 4
_FAULT_TEST = "test_a_fault_is_named"
_IPAM = {check.name for check in ADDRESSES}
_RECOMMENDED = {"machine-ready", "pause-condition", "pool-ready", "ready-steady"}
"""The checks of rules that say SHOULD."""


EXPECTED = {
    "cluster_without_owner": Expected("cluster-waits-for-owner", "IC-19", "no Cluster owns"),
    "machine_without_owner": Expected("machine-waits-for-owner", "IM-19", "no Machine owns"),
    "no_wait_for_cluster": Expected(
        "machine-waits-for-cluster", "IM-19", "infrastructure of its cluster is not provisioned"
    ),
    "no_wait_for_data": Expected(
        "machine-waits-for-data",
        "IM-19",
        "no bootstrap data",
        also=(Violation("pool-waits-for-data", "IM-19", "no bootstrap data"),),
    ),
    "no_provider_id": Expected("machine-provider-id", "IM-01", "provider ID is missing"),
    "shared_provider_id": Expected(
        "provider-id-constant", "IM-01", "is also that of", ("machine-failure-domain",)
    ),
    "forgotten_work": Expected(
        "restart", "SM-09", "never became provisioned", missing="main-interrupted"
    ),
    "changed_spec": Expected("spec-kept", "TP-06", "changed memoryMiB from 512 to 1024"),
    "no_endpoint": Expected("cluster-endpoint", "IC-02", "endpoint is missing"),
    "wrong_failure_domain": Expected("machine-failure-domain", "IM-06", "elsewhere"),
    "no_finalizer": Expected("finalizer-first", "SM-08", "no finalizer"),
    "finalizer_stays": Expected(
        "delete-machine", "IM-25", "it still exists", missing="main-deleted"
    ),
    "ignored_pause": Expected(
        "pause-annotation",
        "SM-01",
        "although the object has",
        also=(Violation("pool-paused", "MP-20", "although the object has"),),
    ),
    "ignored_external_management": Expected("cluster-externally-managed", "IC-15", "managed-by"),
    "deletion_while_paused": Expected("pause-deletion", "MV-08", "deletion of a paused object"),
    "no_ready": Expected(
        "machine-ready",
        "IM-10",
        "condition Ready is missing",
        also=(Violation("pool-ready", "MP-14", "condition Ready is missing"),),
        missing_condition="Ready",
    ),
    "no_paused": Expected("pause-condition", "ST-08", "is not True", missing="main-paused"),
    "varying_message": Expected("ready-steady", "ST-06", "changes without", ("restart",)),
    "not_provisioned_while_paused": Expected(
        "provisioned-once", "IM-03", "no longer is", ("pause-deletion",)
    ),
    "failing_early_deletion": Expected(
        "delete-early", "IM-25", "still exists", missing="external-0"
    ),
    "pool_unsorted": Expected("pool-order", "MP-03", "the order", ("pool-scale-up",)),
    "pool_controls_machines": Expected(
        "pool-machines", "MP-09", "the pool controls it", keeps_objects=True
    ),
    "pool_ignores_mark": Expected("pool-scale-down", "MP-10", "has the mark"),
    "unblocked_address": Expected("address-owners", "IP-09", "does not block deletion"),
    "ignored_pause_of_claims": Expected("claim-paused", "IP-08", "although it has the annotation"),
}

_ALWAYS = {
    *("no_wait_for_data", "forgotten_work", "changed_spec", "no_finalizer", "finalizer_stays"),
    *("ignored_pause", "deletion_while_paused", "varying_message"),
    *("pool_ignores_mark", "unblocked_address"),
}
"""Faults that depend on restarts, finalizers, writers and the order of events of a real cluster.

The others run with ``--exhaustive``: tests/unit/judge/running has a fault for each check.
"""
PARAMETERS = [fault if fault in _ALWAYS else exhaustive(fault)[0] for fault in FAULTS]


@pytest.fixture(scope="module")
def site(base: Base) -> Iterator[Site]:
    folder = base.folder / "conformance"
    made = Site(build_described("homelab", CONTRACT, folder, homelab()), base, folder)
    with ExitStack() as ends:
        ends.callback(made.servers.stop)
        made.start()
        yield made


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest, site: Site
) -> Iterator[dict[str, Future[tuple[CheckResult, ...]]]]:
    """Return the runs of the faulty managers, which run in parallel.

    A child process ends with the thread that started it, so the threads last as long as the
    module.
    """
    rules = load_rules(resources.schemas(), CONTRACT)

    def run(fault: str) -> tuple[CheckResult, ...]:
        expected, name = EXPECTED[fault], fault.replace("_", "-")
        manager = site.manager(name, "-P", "-m", "tests.e2e.faulty_manager", fault)
        try:
            manager.start()
            session = site.session(name, manager, expected)
            also = (each.check for each in expected.also)
            selection = Selection(frozenset({expected.check, *expected.other_checks, *also}))
            if expected.check in _IPAM:
                pools = site.ipam_session(name, manager)
                return run_checks(pools, ADDRESSES, rules, selection)
            return run_checks(session, INFRASTRUCTURE, rules, selection)
        finally:
            manager.stop()

    tests = {item.name for item in request.session.items}
    selected = [fault for fault in FAULTS if f"{_FAULT_TEST}[{fault}]" in tests]
    with ThreadPoolExecutor(_THREADS) as executor:
        yield {fault: executor.submit(run, fault) for fault in selected}


@pytest.mark.parametrize("fault", PARAMETERS)
def test_a_fault_is_named(runs: dict[str, Future[tuple[CheckResult, ...]]], fault: str) -> None:
    results = runs[fault].result()

    expected = EXPECTED[fault]
    for violation in (Violation(*expected[:3]), *expected.also):
        (result,) = (each for each in results if each.name == violation.check)
        outcome = CheckOutcome.WARNING if violation.check in _RECOMMENDED else CheckOutcome.FAILED
        assert result.outcome is outcome, results
        assert violation.rule in result.rules
        assert violation.message in result.message
        assert result.subject
        assert result.links


def test_a_generated_provider_passes(site: Site) -> None:
    rules = load_rules(resources.schemas(), CONTRACT)
    session = site.session(GOOD, site.servers.first.manager)
    session.mover = site.servers

    results = run_checks(session, INFRASTRUCTURE, rules)

    assert [each for each in results if each.outcome is not CheckOutcome.PASSED] == []
    assert len(results) == len(INFRASTRUCTURE)
    check_life(session, next(each for each in results if each.name == "delete-machine"))


def check_life(session: Session, result: CheckResult) -> None:
    """Check that a machine's changes are complete, in order, and name their writers."""
    lives = [each for each in result.lives if each.changes[-1].what == "deleted"]
    life = next(each for each in lives if each.subject.startswith(session.objects.machine_kind))
    milestones = ("created", "owner set", "providerID", "provisioned: true", "deletion requested")
    found = [next(e for e in life.changes if e.what.startswith(each)) for each in milestones]
    assert [each.seconds for each in found] == sorted(each.seconds for each in found)
    writers = [each.writer for each in found]
    assert "capsmith" in writers[0]
    assert "capi-manager" in writers[1]
    assert writers[4] == ""
    assert writers[2] == writers[3] != ""
    assert any(each.path == "status.conditions[Ready]" for each in life.changes)


def test_a_generated_ipam_provider_passes(site: Site) -> None:
    manager = site.manager("addresses", "-m")
    try:
        manager.start()
        session = site.ipam_session("addresses", manager)
        results = run_checks(session, ADDRESSES, load_rules(resources.schemas(), CONTRACT))
    finally:
        manager.stop()

    assert [each for each in results if each.outcome is not CheckOutcome.PASSED] == []
    assert len(results) == len(ADDRESSES)


def test_a_given_management_cluster(site: Site, tmp_path: Path) -> None:
    """The provider runs already; what only a cluster of its own allows is skipped."""
    management = site.servers.first.management
    manager = site.manager("conformance-homelab", "-m")
    command = [sys.executable, "-m", "capsmith", "conformance", str(site.release)]
    command += ["--kubeconfig", str(management.kubeconfig), "--format", "junit"]
    command += ["--select", "cluster-ready,machine-provider-id,remediation,restart,move"]
    try:
        manager.start()
        done = subprocess.run(
            command, env=environment(), capture_output=True, text=True, cwd=tmp_path
        )
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
    assert management.client.find("v1", "Namespace", "conformance-homelab") is None


def test_an_end_by_sigterm_leaves_nothing(site: Site, tmp_path: Path) -> None:
    """Objects that the run applied go too; those that existed before stay."""
    management = site.servers.first.management
    client, secrets = management.client, [_secret("mine"), _secret("applied")]
    client.create(secrets[0])
    applied = tmp_path / "applied.yaml"
    applied.write_text(yaml.safe_dump_all(secrets))
    manager = site.manager("conformance-homelab", "-m")
    command = [sys.executable, "-m", "capsmith", "conformance", str(site.release)]
    command += ["--kubeconfig", str(management.kubeconfig), "--apply", str(applied)]
    try:
        manager.start()
        with subprocess.Popen(
            command, env=environment(), stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.terminate()
            process.communicate()
    finally:
        manager.stop()

    assert first.startswith("passed: cluster-provisioned")
    assert process.returncode == 128 + signal.SIGTERM
    assert client.find("v1", "Namespace", "conformance-homelab") is None
    left = [client.find("v1", "Secret", each, "default") for each in ("mine", "applied")]
    assert [each is not None for each in left] == [True, False]
    assert SimulatedCloud(site.cloud("conformance-homelab")).servers() == []


def _secret(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
