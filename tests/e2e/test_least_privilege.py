"""What managers may do is what they do in the life of a cluster with addresses from pools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.wait import eventually
from tests.e2e.addresses import add_pools, pools, with_addresses
from tests.e2e.harness.report import Report
from tests.e2e.least_privilege import check_least_privilege
from tests.e2e.releases import NEWEST
from tests.e2e.scenario import Scenario
from tests.e2e.stack import Combination
from tests.e2e.whole import WHOLE_SECONDS, WholeStack, delete_and_check

_KUBEADM = "system:serviceaccount:capi-kubeadm-bootstrap-system:capi-kubeadm-bootstrap-manager"
_CONTROL_PLANES = ("controlplane.cluster.x-k8s.io", "skiffcontrolplanes")
_COMBINATION = Combination(NEWEST, "v1beta2", "complete", f"privilege-{NEWEST}-v1beta2")


@pytest.fixture(scope="module")
def whole(base: Base, report: Report) -> Iterator[WholeStack]:
    made = WholeStack(base, _COMBINATION, report)
    yield made
    made.stop()


@pytest.fixture
def scenario(request: pytest.FixtureRequest, whole: WholeStack) -> Iterator[Scenario]:
    with whole.scenario(request.node.originalname) as made:
        yield made


def test_each_permission_is_used_or_explained(scenario: Scenario, whole: WholeStack) -> None:
    """Each manager has its own ServiceAccount, and the API server logs its requests.

    Proves: RB-04, RB-06, RB-07, RB-10, IP-14.
    """
    add_pools(scenario)
    scenario.create(with_addresses(scenario, control_planes=1, workers=1))
    scenario.wait_running(2, timeout=WHOLE_SECONDS)
    scenario.scale_workers(2)
    scenario.wait_running(3, timeout=WHOLE_SECONDS)
    for pool in pools(scenario):
        scenario.client.delete(pool)
    delete_and_check(scenario)
    check_least_privilege(whole.site, "infrastructure", "bootstrap", "control-plane", "ipam")


def test_kubeadm_s_bootstrap_manager_may_get_control_planes_and_no_more(whole: WholeStack) -> None:
    """In a release that clusterctl has installed, with the namespaces that it writes.

    Proves: RB-11.
    """
    management = whole.site.management

    eventually(lambda: management.may(_KUBEADM, "get", *_CONTROL_PLANES), what="the role in force")

    for verb in ("list", "watch", "create", "update", "patch", "delete"):
        assert not management.may(_KUBEADM, verb, *_CONTROL_PLANES), verb
