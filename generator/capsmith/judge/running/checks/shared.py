"""The test clusters that several checks share."""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.cleaning import MISSING_CONFIG
from capsmith.judge.running.contract import MANAGED_BY, condition, effects
from capsmith.judge.running.model import Violated
from capsmith.judge.running.session import Session

MAIN = "main"
"""The cluster in which everything is as it should be."""
FIRST = "main-0"
"""Its control plane machine."""
OWNERLESS = "ownerless"
EXTERNAL = "external"
BLOCKED = "external-0"
"""A machine of the cluster whose infrastructure is managed externally, and not complete."""
WAITING = "main-waiting"
"""A machine without bootstrap data."""
_CONTROL = "main-control"


def main_cluster(session: Session) -> JSON:
    """Return the provisioned infrastructure cluster of the main cluster."""
    ownerless(session)

    def create() -> None:
        session.create_cluster(MAIN)
        session.wait_provisioned(session.objects.cluster_kind, MAIN)

    session.once("the provisioning of the main cluster", create)
    return session.latest(session.objects.cluster_kind, MAIN)


def main_machine(session: Session) -> JSON:
    """Return the provisioned control plane machine of the main cluster."""
    main_cluster(session)

    def create() -> None:
        session.create_machine(MAIN, FIRST, control_plane=True)
        session.wait_provisioned(session.objects.machine_kind, FIRST)

    session.once("the provisioning of the first machine", create)
    return session.latest(session.objects.machine_kind, FIRST)


def ownerless(session: Session) -> None:
    """Create an infrastructure cluster and machine without owners, before the main cluster."""

    def create() -> None:
        session.client.create(session.objects.cluster(OWNERLESS, session.namespace))
        machine = session.objects.machine(OWNERLESS, session.namespace, OWNERLESS)
        session.client.create(machine)

    session.once("the creation of objects without owners", create)


def blocked(session: Session) -> None:
    """Create objects that have to wait, then a machine that is provisioned after them.

    That the later one is provisioned shows that the manager had time for the earlier ones.
    """
    main_machine(session)

    def create() -> None:
        session.create_cluster(EXTERNAL, {MANAGED_BY: "conformance"})
        session.create_machine(EXTERNAL, BLOCKED)
        session.create_machine(MAIN, WAITING, bootstrap=missing_bootstrap(session))
        kind = session.objects.machine_kind
        for name in (BLOCKED, WAITING):
            session.wait(kind, name, _has_owner, "core set no owner reference")
        session.create_machine(MAIN, _CONTROL)
        session.wait_provisioned(kind, _CONTROL)
        session.settle()

    session.once("the provisioning of a later machine", create)


def missing_bootstrap(session: Session) -> JSON:
    """Return the reference to a bootstrap configuration that does not exist.

    So the Machine has no data until the reference is replaced.
    """
    config = {
        "apiVersion": f"bootstrap.cluster.x-k8s.io/{session.core.version}",
        "kind": "KubeadmConfig",
        "metadata": {"name": MISSING_CONFIG},
    }
    return {"configRef": session.core.reference(config)}


def refuse_effects(session: Session, kind: str, name: str, reason: str) -> None:
    """Raise Violated if a state of an object shows an effect; ``reason`` says why it must not."""
    states = session.history.states(kind, name)
    for state in states:
        found = effects(state, session.contract, states[0])
        if found:
            message = f"the manager wrote {', '.join(found)} although {reason}"
            raise Violated(message, session.subject(kind, name), found[0])


def require_condition(session: Session, obj: JSON, kind: str, status: str) -> JSON:
    """Return a condition; raises Violated if it is missing or has another status."""
    found = condition(obj, kind)
    where = session.subject(obj["kind"], obj["metadata"]["name"])
    path = f"status.conditions[{kind}]"
    if found is None:
        raise Violated(f"condition {kind} is missing", where, path)
    if found.get("status") != status:
        message = f"condition {kind} is {found.get('status')}, not {status}"
        raise Violated(message, where, path)
    return found


def _has_owner(obj: JSON) -> bool:
    return bool(obj["metadata"].get("ownerReferences"))
