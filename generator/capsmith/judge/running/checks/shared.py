"""Create the test clusters that several checks use."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from capsmith.clusters.processes.kube import JSON, StaleError
from capsmith.judge.running.contract import (
    MANAGED_BY,
    V1BETA1,
    find_condition,
    find_effects,
    provider_id,
)
from capsmith.judge.running.model import Violated
from capsmith.judge.running.session import (
    MISSING_CONFIG,
    Session,
    make_node,
    register_node,
    report_node_ready,
)

_TOUCHED = "conformance.capsmith.dev/touched"
_HEARTBEAT_SECONDS = 1.0


def register_nodes(session: Session) -> None:
    """Create a Node for each machine with a provider ID, and wait until core finds the Nodes.

    Core watches Nodes only after the first control plane machine has a Node, so each round also
    changes the Machines, which makes core look again.  Machines that are deleted in the meantime
    are ignored.  Raises Violated if core does not find a Node in time.
    """
    kind = session.objects.machine_kind
    objs = {obj["metadata"]["name"]: obj for obj in session.list_existing(kind)}
    names = [name for name, obj in objs.items() if provider_id(obj) and _is_alive(session, name)]
    nodes = [make_node(name, provider_id(objs[name])) for name in names]
    for each in nodes:
        register_node(session.client, each)
    deadline = time.monotonic() + session.timing.patience
    while missing := [name for name in names if _lacks_node(session, name)]:
        if time.monotonic() > deadline:
            where = session.subject("Machine", missing[0])
            raise Violated("core found no Node with its provider ID", where, "status.nodeRef")
        for each in nodes:
            report_node_ready(session.client, each)
        for name in missing:
            _touch_machine(session, name)
        session.history.wait(
            lambda: not any(_lacks_node(session, name) for name in missing), _HEARTBEAT_SECONDS
        )


def _touch_machine(session: Session, name: str) -> None:
    machine = session.history.latest("Machine", name)
    if machine is not None:
        touched = {"annotations": {_TOUCHED: str(time.monotonic())}}
        # The history may show a Machine that has just been deleted.
        with suppress(StaleError):
            session.client.patch(machine, {"metadata": touched})


def _is_alive(session: Session, name: str) -> bool:
    machine = session.history.latest("Machine", name)
    return machine is not None and "deletionTimestamp" not in machine["metadata"]


def _lacks_node(session: Session, name: str) -> bool:
    machine = session.history.latest("Machine", name) or {}
    return _is_alive(session, name) and not (machine.get("status") or {}).get("nodeRef")


MAIN = "main"
"""Name of the regular cluster."""
FIRST = "main-0"
"""Name of the control plane machine in the regular cluster."""
OWNERLESS = "ownerless"
EXTERNAL = "external"
BLOCKED = "external-0"
"""Name of a machine in a cluster whose externally managed infrastructure is incomplete."""
WAITING = "main-waiting"
"""Name of a machine without bootstrap data."""
_CONTROL = "main-control"


def ensure_main_cluster(session: Session) -> JSON:
    """Return the regular cluster's infrastructure cluster once it is provisioned.

    The first call creates it and raises Violated if it is not provisioned in time; later calls then
    raise Skipped.
    """
    ensure_ownerless(session)

    def create() -> None:
        session.create_cluster(MAIN)
        session.wait_provisioned(session.objects.cluster_kind, MAIN)

    session.run_once("the provisioning of the main cluster", create)
    return session.latest(session.objects.cluster_kind, MAIN)


def ensure_main_machine(session: Session) -> JSON:
    """Return the regular cluster's control plane machine once it is provisioned.

    The first call creates it and raises Violated if it is not provisioned in time; later calls then
    raise Skipped.
    """
    ensure_main_cluster(session)

    def create() -> None:
        session.create_machine(MAIN, FIRST, control_plane=True)
        session.wait_provisioned(session.objects.machine_kind, FIRST)

    session.run_once("the provisioning of the first machine", create)
    return session.latest(session.objects.machine_kind, FIRST)


def ensure_ownerless(session: Session) -> None:
    """Create an infrastructure cluster and machine without owners, before the regular cluster."""

    def create() -> None:
        session.client.create(session.objects.cluster(OWNERLESS, session.namespace))
        machine = session.objects.machine(OWNERLESS, session.namespace, OWNERLESS)
        session.client.create(machine)

    session.run_once("the creation of objects without owners", create)


def ensure_blocked(session: Session) -> None:
    """Create objects that must not be provisioned yet, and then a machine that can be.

    Waits until that machine is provisioned: by then, the manager would have acted on the earlier
    objects as well.
    """
    ensure_main_machine(session)

    def create() -> None:
        session.create_cluster(EXTERNAL, {MANAGED_BY: "conformance"})
        session.create_machine(EXTERNAL, BLOCKED)
        session.create_machine(MAIN, WAITING, bootstrap=refer_to_missing_bootstrap(session))
        kind = session.objects.machine_kind
        for name in (BLOCKED, WAITING):
            session.wait(kind, name, _has_owner, "core set no owner reference")
        # A manager that acts on the earlier objects must do so before it completes this one.
        session.create_machine(MAIN, _CONTROL)
        session.wait_provisioned(kind, _CONTROL)
        session.settle()

    session.run_once("the provisioning of a later machine", create)


def refer_to_missing_bootstrap(session: Session) -> JSON:
    """Return a reference to a bootstrap configuration that does not exist.

    A Machine with this reference has no bootstrap data until the reference is replaced.
    """
    config = {
        "apiVersion": f"bootstrap.cluster.x-k8s.io/{session.core.version}",
        "kind": "KubeadmConfig",
        "metadata": {"name": MISSING_CONFIG},
    }
    return {"configRef": session.core.reference(config)}


def refuse_effects(session: Session, kind: str, name: str, reason: str) -> None:
    """Raise Violated if any recorded state of an object shows an external effect.

    ``reason`` completes the message "the manager wrote ... although".
    """
    states = session.history.states(kind, name)
    # All states, because an effect that was undone is still an effect.
    for state in states:
        found = find_effects(state, session.contract, states[0])
        if found:
            message = f"the manager wrote {', '.join(found)} although {reason}"
            raise Violated(message, session.subject(kind, name), found[0])


def require_condition(session: Session, obj: JSON, kind: str, status: str) -> JSON:
    """Return an object's condition of type ``kind``.

    Raises Violated if it is missing or its status is not ``status``.
    """
    found = find_condition(obj, kind)
    where = session.subject(obj["kind"], obj["metadata"]["name"])
    path = f"status.conditions[{kind}]"
    if found is None:
        raise Violated(f"condition {kind} is missing", where, path)
    if found.get("status") != status:
        message = f"condition {kind} is {found.get('status')}, not {status}"
        raise Violated(message, where, path)
    return found


def wait_for_condition(session: Session, obj: JSON, kind: str, status: str) -> JSON:
    """Wait until an object's condition of type ``kind`` has ``status``, and return the condition.

    A provider may provision an object first and report it as ready later: a pool is provisioned
    with its first machine and ready with its last.  Raises Violated on a timeout.
    """
    of, name = obj["kind"], obj["metadata"]["name"]

    def holds() -> bool:
        found = find_condition(session.latest(of, name), kind)
        return found is not None and found.get("status") == status

    session.history.wait(holds, session.patience(name, f"condition {kind} of {of}"))
    return require_condition(session, session.latest(of, name), kind, status)


def _has_owner(obj: JSON) -> bool:
    return bool(obj["metadata"].get("ownerReferences"))


_STATUSES = ("True", "False", "Unknown")


def check_conditions(session: Session, kind: str, name: str) -> None:
    """Raise Violated if a condition in any recorded state of an object violates the contract."""
    for state in session.history.states(kind, name):
        for each in (state.get("status") or {}).get("conditions") or []:
            for problem in _problems(each, session.contract, state):
                where = session.subject(kind, name)
                raise Violated(problem, where, f"status.conditions[{each.get('type')}]")


def _problems(condition: dict[str, Any], contract: str, obj: JSON) -> Iterator[str]:
    kind = condition.get("type")
    if condition.get("status") not in _STATUSES:
        yield f"the status of {kind} is {condition.get('status')!r}"
    if not condition.get("lastTransitionTime"):
        yield f"{kind} has no lastTransitionTime"
    if contract == V1BETA1:
        if condition.get("severity") and condition.get("status") != "False":
            yield f"{kind} has a severity although it is {condition.get('status')}"
        return
    if not condition.get("reason"):
        yield f"{kind} has no reason"
    if "severity" in condition:
        yield f"{kind} has a severity, which metav1.Condition does not have"
    if int(condition.get("observedGeneration") or 0) > int(obj["metadata"].get("generation") or 0):
        yield f"the observedGeneration of {kind} is greater than the object's generation"
