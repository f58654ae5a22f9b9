"""Nodes of the test clusters: what kubelets register, for core to find by provider IDs."""

from __future__ import annotations

import time

from capsmith.judge.running.contract import provider_id
from capsmith.judge.running.model import Violated
from capsmith.judge.running.node_objects import node, register, report_ready
from capsmith.judge.running.session import Session

_TOUCHED = "conformance.capsmith.dev/touched"
_HEARTBEAT_SECONDS = 1.0


def register_nodes(session: Session) -> None:
    """Create a Node for each machine with a provider ID, and wait until core finds it.

    Core watches Nodes only after the first control plane machine has one, so each round also
    changes the Machines.
    """
    kind = session.objects.machine_kind
    names = [name for name in session.history.names(kind) if _has_machine(session, name)]
    nodes = [node(name, provider_id(session.latest(kind, name))) for name in names]
    for each in nodes:
        register(session.client, each)
    deadline = time.monotonic() + session.timing.patience
    while missing := [name for name in names if not _has_node(session, name)]:
        if time.monotonic() > deadline:
            where = session.subject("Machine", missing[0])
            raise Violated("core found no Node with its provider ID", where, "status.nodeRef")
        for each in nodes:
            report_ready(session.client, each)
        for name in missing:
            touched = {"annotations": {_TOUCHED: str(time.monotonic())}}
            session.client.patch(session.latest("Machine", name), {"metadata": touched})
        session.history.wait(lambda: _have_nodes(session, missing), _HEARTBEAT_SECONDS)


def _has_machine(session: Session, name: str) -> bool:
    machine = session.history.latest("Machine", name)
    obj = session.history.latest(session.objects.machine_kind, name)
    alive = machine is not None and "deletionTimestamp" not in machine["metadata"]
    return alive and obj is not None and bool(provider_id(obj))


def _has_node(session: Session, name: str) -> bool:
    machine = session.history.latest("Machine", name) or {}
    return bool((machine.get("status") or {}).get("nodeRef"))


def _have_nodes(session: Session, names: list[str]) -> bool:
    return all(_has_node(session, name) for name in names)
