"""Clusters whose parts are deleted in another order than core's: no server is left behind.

The real garbage collector, namespace controller and core delete what the test does not.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

import pytest

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.scenario import Scenario, infrastructure_cluster, private_identity, wait_nothing_left
from tests.e2e.stack import COMBINATIONS

# The newest and the oldest release of core, the latter at night only.
stacks = pytest.mark.parametrize("stack", COMBINATIONS[:2], ids=str, indirect=True)
pytestmark = [pytest.mark.newest, stacks]


def test_deleted_in_foreground(scenario: Scenario) -> None:
    """The garbage collector deletes the infrastructure cluster together with the Machines."""
    documents = _running(scenario)
    with _phase(scenario, "foreground"):
        scenario.client.delete(scenario.cluster(), "Foreground")
        _wait_gone(scenario, documents)


def test_deleted_with_its_namespace(scenario: Scenario) -> None:
    """The namespace controller deletes all kinds at the same time, Secrets included."""
    documents = _running(scenario)
    name = scenario.namespace
    with _phase(scenario, "namespace"):
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        scenario.client.delete(namespace)
        _wait_gone(scenario, documents)
        eventually(
            lambda: scenario.client.find("v1", "Namespace", name) is None, what="namespace gone"
        )


def test_pruned_infrastructure_first(scenario: Scenario) -> None:
    """Argo CD and `kubectl delete -f` delete what the user applied, in whatever order."""
    documents = _running(scenario)
    cluster = infrastructure_cluster(scenario, documents)
    with _phase(scenario, "prune"):
        for document in (cluster, *(each for each in documents if each is not cluster)):
            scenario.client.delete(document)
        _wait_gone(scenario, documents)


def test_identity_deleted_first(scenario: Scenario) -> None:
    """An identity stays until no object uses it."""
    secret, identity = private_identity(scenario, [scenario.namespace])
    _delete_after(scenario, identity, (identity, secret))


def test_secret_deleted_first(scenario: Scenario) -> None:
    """The Secret of an identity stays until no object uses the identity."""
    secret, identity = private_identity(scenario, [scenario.namespace])
    _delete_after(scenario, secret, (identity, secret))


def _delete_after(scenario: Scenario, first: JSON, credentials: tuple[JSON, JSON]) -> None:
    """Delete a part of the credentials, then the cluster, then the rest."""
    identity, _ = credentials
    documents = _running(scenario, identity["metadata"]["name"])
    with _phase(scenario, f"{first['kind']} first"):
        scenario.client.delete(first)
        scenario.delete()
        wait_nothing_left(scenario)
        _wait_gone(scenario, documents)
        for each in credentials:
            scenario.client.delete(each)
        _wait_gone(scenario, list(credentials))


def _running(scenario: Scenario, identity: str = "") -> list[JSON]:
    """Create a cluster with three Machines; return what the user applied."""
    documents = scenario.render(control_planes=1, workers=2)
    if identity:
        cluster = infrastructure_cluster(scenario, documents)
        cluster["spec"]["identityRef"]["name"] = identity
    scenario.create(documents)
    scenario.wait_running(3)
    return documents


def _phase(scenario: Scenario, name: str) -> AbstractContextManager[object]:
    return scenario.stack.report.phase(scenario.stack.name, f"deletion: {name}")


def _wait_gone(scenario: Scenario, documents: list[JSON]) -> None:
    """Wait until no object is left, and no server and no network in the cloud."""

    def gone() -> bool:
        left = [_name(each) for each in documents if _exists(scenario, each)]
        left += [f"server {each.id}" for each in scenario.servers()]
        left += [f"network {each.id}" for each in scenario.stack.cloud.clusters()]
        if left:
            raise NotYet(f"still there: {left}")
        return True

    eventually(gone, what="everything deleted")


def _exists(scenario: Scenario, document: JSON) -> bool:
    metadata = document["metadata"]
    found = scenario.client.find(
        document["apiVersion"], document["kind"], metadata["name"], metadata.get("namespace")
    )
    return found is not None


def _name(document: JSON) -> str:
    return f"{document['kind']} {document['metadata']['name']}"
