"""A provider is brought from one contract to the next under clusters that live on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.errors import ClusterctlError
from capsmith.clusters.processes.kube import ApiError
from capsmith.clusters.processes.wait import NotYet, eventually, steadily
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.harness.report import Report
from tests.e2e.releases import BETWEEN, NEWEST, OLDEST
from tests.e2e.scenario import Scenario, wait_nothing_left
from tests.e2e.topology import wait_reconciled
from tests.e2e.upgrade import (
    Identity,
    UpgradedStack,
    identity,
    scale_control_plane,
    scale_topology,
    turn_class,
)
from tests.e2e.upgrade_checks import (
    check_labels,
    check_readable,
    check_references,
    crd_of,
    wait_migrated,
)
from tests.e2e.whole import WHOLE_SECONDS, wait_available

NAME = "contract-upgrade"
OLD, NEW = "v1alpha1", "v1alpha2"
_QUIET_SECONDS = 3.0

Both = tuple[Scenario, Scenario]
"""A cluster of plain objects, and one of a ClusterClass."""


@pytest.fixture(scope="module")
def upgraded(base: Base, report: Report) -> Iterator[UpgradedStack]:
    made = UpgradedStack(base, NAME, report)
    try:
        yield made
    finally:
        made.stop()


def test_contract_upgrade(upgraded: UpgradedStack) -> None:
    """Proves: CC-07, CC-31, CRD-15, CRD-16, GEN-01, GEN-02, GEN-06, BC-06, CP-19, SM-09."""
    with upgraded.cluster("plain") as plain, upgraded.cluster("classy") as classy:
        both = (plain, classy)
        _create(upgraded, both)
        second = _serve_both(upgraded, both)
        _serve_one(upgraded, both, second)
        _drop(upgraded, both)
        with upgraded.phase("v0.4: delete"):
            _delete(both)
    for manager in upgraded.site.managers.values():
        assert manager.complaints() == []


def _create(upgraded: UpgradedStack, both: Both) -> None:
    plain, classy = both
    with upgraded.phase(f"core {OLDEST}, v0.1: create two clusters"):
        plain.create(plain.render(1, 2))
        classy.create(classy.render(1, 1, flavor=upgraded.stack.provider.topology_flavor))
        for each, machines in zip(both, (3, 2), strict=True):
            each.wait_running(machines, timeout=WHOLE_SECONDS)
            wait_available(each)
        wait_reconciled(classy)


def _serve_both(upgraded: UpgradedStack, both: Both) -> ProviderUnderTest:
    """One command replaces core and provider; nothing else would leave them compatible."""
    plain, classy = both
    release = _released(upgraded, "v0.2.0", "--contract", "v1beta1,v1beta2")
    upgraded.stack.offer(release, BETWEEN, NEWEST)
    for series in (OLDEST, BETWEEN):
        with pytest.raises(ClusterctlError, match="contract"):
            upgraded.upgrade_without_core(release, series)
    with pytest.raises(ClusterctlError, match="can't skip more than 3 versions"):
        upgraded.upgrade_with_core(release, NEWEST)
    before = identity(both)
    _upgrade(upgraded, both, release, before, BETWEEN)
    with upgraded.phase("v0.2: stored objects are migrated"):
        wait_migrated(plain.client, release)
    with upgraded.phase("v0.2: all objects in both versions, there and back"):
        check_readable(plain.client, release, (OLD, NEW))
        eventually(lambda: check_references(plain), what="references of this version")
    _check_same(both, before)
    with upgraded.phase("v0.2: workers 2 -> 3, a class of the new version"):
        plain.scale_workers(3)
        plain.wait_running(4, timeout=WHOLE_SECONDS)
        after = identity(both)
        turn_class(classy, OLD, NEW)
        wait_reconciled(classy)
        _check_same(both, after)
    return release


def _serve_one(upgraded: UpgradedStack, both: Both, before: ProviderUnderTest) -> None:
    plain, classy = both
    release = _released(upgraded, "v0.3.0", "--contract", "v1beta2")
    upgraded.stack.offer(release)
    _upgrade(upgraded, both, release, identity(both), NEWEST)
    for group in before.groups:
        eventually(partial(_unserved, plain, group), what=f"{group}/{OLD} answers 404")
    with upgraded.phase("v0.3: workers 3 -> 2, workers of the class 1 -> 2"):
        plain.scale_workers(2)
        scale_topology(classy, 2)
        for each in both:
            each.wait_running(3, timeout=WHOLE_SECONDS)


def _unserved(scenario: Scenario, group: str) -> bool:
    """Discovery follows the CRDs."""
    try:
        scenario.client.request("GET", f"/apis/{group}/{OLD}")
    except ApiError as error:
        return error.status == 404
    raise NotYet("it is served")


def _drop(upgraded: UpgradedStack, both: Both) -> None:
    plain, classy = both
    release = _released(upgraded, "v0.4.0", "--drop-api-version", OLD)
    upgraded.stack.offer(release)
    _upgrade(upgraded, both, release, identity(both))
    for crd in release.crds:
        installed = crd_of(plain.client, crd)
        assert [each["name"] for each in installed["spec"]["versions"]] == [NEW]
        assert installed["status"]["storedVersions"] == [NEW]
    with upgraded.phase("v0.4: control plane 1 -> 3, workers of the class 2 -> 1"):
        scale_control_plane(plain, 3)
        scale_topology(classy, 1)
        plain.wait_running(5, timeout=WHOLE_SECONDS)
        classy.wait_running(2, timeout=WHOLE_SECONDS)
        for each in both:
            wait_available(each)


def _delete(both: Both) -> None:
    for each in both:
        each.delete(timeout=WHOLE_SECONDS)
    for each in both:
        each.delete_classes()
    for each in both:
        wait_nothing_left(each)


def _released(upgraded: UpgradedStack, version: str, *arguments: str) -> ProviderUnderTest:
    with upgraded.phase(f"capsmith update {' '.join(arguments)}"):
        return upgraded.lineage.go_on(version, *arguments)


def _upgrade(
    upgraded: UpgradedStack,
    both: Both,
    release: ProviderUnderTest,
    before: Identity,
    series: str = "",
) -> None:
    core = f", core {series}" if series else ""
    with upgraded.phase(f"clusterctl upgrade apply: {release.version}{core}"):
        upgraded.stack.upgrade(release, series)
        for each in both:
            wait_available(each)
    check_labels(both[0].client, release)
    _check_same(both, before)


def _check_same(both: Both, before: Identity) -> None:
    """Nothing was made or taken away, and nothing is about to be."""

    def same() -> None:
        assert identity(both) == before

    steadily(same, seconds=_QUIET_SECONDS)
    for each in both:
        wait_available(each)
        each.wait_running(len(each.machines()))
