"""Sessions of `capsmith conformance` on the clusters of a scenario."""

from __future__ import annotations

from collections.abc import Sequence

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.cluster_session import ClusterSession, read_referenced_roles
from capsmith.judge.running.contract import CoreObjects
from capsmith.judge.running.model import Timing
from capsmith.judge.running.objects import select_provider_objects
from tests.e2e.harness.contract import ContractVersion
from tests.e2e.releases import KUBERNETES
from tests.e2e.scenario import Scenario


def cluster_session(
    scenario: Scenario, documents: Sequence[JSON], contract: ContractVersion, patience: float
) -> ClusterSession:
    """Return a session for a whole cluster that consists of rendered documents."""
    roles = read_referenced_roles(documents)
    return ClusterSession(
        scenario.client,
        CoreObjects(scenario.core.partition("/")[2], scenario.namespace, KUBERNETES),
        contract,
        Timing(patience=patience),
        select_provider_objects(documents, roles),
        documents=tuple(documents),
        roles=roles,
    )
