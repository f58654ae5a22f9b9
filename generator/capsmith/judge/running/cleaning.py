"""Remove what a run against an infrastructure provider has created, machines first."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from capsmith.clusters.processes.kube import JSON, KubeClient, StaleError
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.contract import PAUSED

if TYPE_CHECKING:
    from capsmith.judge.running.session import Session

MISSING_CONFIG = "conformance-missing"
"""The name of a bootstrap configuration that does not exist."""
_CORE_KINDS = (
    "MachineHealthCheck",
    "MachineDeployment",
    "MachineSet",
    "MachinePool",
    "Machine",
    "Cluster",
)


def clean_up(session: Session) -> None:
    """Delete all objects of the run and its namespace, in each cluster in which it has some.

    Finalizers are removed from objects that a manager does not release in time.
    """
    clients = [each for each in (session.client, session.moved_to) if each is not None]
    for client in clients:
        _request(session, client)
    with suppress(TimeoutError):
        eventually(lambda: _all_deleted(session, clients), timeout=session.timing.cleanup)
    for client in clients:
        for each in _objects(session, client):
            client.delete(each)
            _change(client, each, {"metadata": {"finalizers": None}})
        delete_namespace(client, session.namespace)


def delete_namespace(client: KubeClient, name: str) -> None:
    """Delete a namespace; one that does not exist is no error."""
    client.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def resume_all(session: Session, client: KubeClient) -> None:
    """End each pause, and give data to what refers to a missing bootstrap configuration.

    Core may not know its kind, and then never deletes a Machine or MachinePool with it.
    """
    version, namespace = session.core.api_version, session.namespace
    for each in _provider_objects(session, client):
        if PAUSED in (each["metadata"].get("annotations") or {}):
            _change(client, each, {"metadata": {"annotations": {PAUSED: None}}})
    for each in client.list(version, "Cluster", namespace):
        if each["spec"].get("paused"):
            _change(client, each, {"spec": {"paused": False}})
    kinds = ("MachinePool", "Machine")
    for each in (obj for kind in kinds for obj in client.list(version, kind, namespace)):
        spec = each["spec"].get("template", each)["spec"]
        reference = spec["bootstrap"].get("configRef") or {}
        if reference.get("name") == MISSING_CONFIG:
            with suppress(StaleError):
                session.provide_data(each, client)


def _request(session: Session, client: KubeClient) -> None:
    """Request the deletion of all Clusters and of what has no owner."""
    resume_all(session, client)
    for each in client.list(session.core.api_version, "Cluster", session.namespace):
        client.delete(each)
    for each in _provider_objects(session, client):
        if not each["metadata"].get("ownerReferences"):
            client.delete(each)


def _all_deleted(session: Session, clients: Iterable[KubeClient]) -> bool:
    found = [each for client in clients for each in _objects(session, client)]
    if found:
        raise NotYet(f"still present: {[each['metadata']['name'] for each in found]}")
    return True


def _objects(session: Session, client: KubeClient) -> list[JSON]:
    version, namespace = session.core.api_version, session.namespace
    core = [each for kind in _CORE_KINDS for each in client.list(version, kind, namespace)]
    return [*_provider_objects(session, client), *core]


def _provider_objects(session: Session, client: KubeClient) -> list[JSON]:
    kinds = session.provider_kinds()
    return [each for kind in kinds for each in client.list(*kind, session.namespace)]


def _change(client: KubeClient, obj: JSON, body: JSON) -> None:
    with suppress(StaleError):
        client.patch(obj, body)
