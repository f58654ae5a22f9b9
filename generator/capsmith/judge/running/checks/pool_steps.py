"""The machine pools that several checks share: names, creation, and what belongs to them."""

from __future__ import annotations

from collections.abc import Iterable

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import (
    MAIN,
    main_cluster,
    missing_bootstrap,
    refuse_effects,
)
from capsmith.judge.running.contract import PAUSED, is_pool_provisioned, provider_id, provider_ids
from capsmith.judge.running.model import Skipped, Violated
from capsmith.judge.running.objects import CORE_GROUP
from capsmith.judge.running.session import Session

POOL_NAME = f"{CORE_GROUP}/pool-name"
REPLICAS = 2
"""Of the pool in which everything is as it should be, at first."""


def main_name(kind: str) -> str:
    """Return the name of the pool in which everything is as it should be."""
    return f"{MAIN}-{kind.lower()}"


def ownerless_name(kind: str) -> str:
    """Return the name of a pool without a MachinePool."""
    return f"ownerless-{kind.lower()}"


def waiting_name(kind: str) -> str:
    """Return the name of a pool without bootstrap data."""
    return f"{MAIN}-waiting-{kind.lower()}"


def paused_name(kind: str) -> str:
    """Return the name of a paused pool."""
    return f"{MAIN}-paused-{kind.lower()}"


def pool_kinds(session: Session) -> list[str]:
    """Return the kinds of machine pools; raises Skipped without one."""
    if not session.objects.pool_kinds:
        raise Skipped("no cluster template has a machine pool of the provider")
    return session.objects.pool_kinds


def created_pools(session: Session) -> None:
    """Create pools that have to wait, then one of each kind that does not."""
    main_cluster(session)
    kinds = pool_kinds(session)

    def create() -> None:
        for kind in kinds:
            session.client.create(
                session.objects.pool(kind, MAIN, session.namespace, ownerless_name(kind))
            )
            session.create_paused_pool(kind, MAIN, paused_name(kind), PAUSED)
            session.create_pool(
                kind, MAIN, waiting_name(kind), 1, bootstrap=missing_bootstrap(session)
            )
        for kind in kinds:
            session.wait(kind, waiting_name(kind), _has_owner, "core set no owner reference")
        for kind in kinds:
            session.create_pool(kind, MAIN, main_name(kind), REPLICAS)

    session.once("the creation of machine pools", create)


def pools(session: Session) -> None:
    """Wait until one pool of each kind is provisioned, after the creation of those that wait.

    That the later ones are provisioned shows that the manager had time for the earlier ones.
    """
    created_pools(session)

    def complete() -> None:
        for kind in pool_kinds(session):
            _wait_complete(session, kind)
        session.settle()

    session.once("the provisioning of machine pools", complete)


def main_pool(session: Session, kind: str) -> JSON:
    """Return the provisioned pool of a kind in which everything is as it should be."""
    pools(session)
    return session.latest(kind, main_name(kind))


def scale(session: Session, kind: str, replicas: int) -> None:
    """Change the size that the MachinePool requests."""
    pool = session.latest("MachinePool", main_name(kind))
    session.client.patch(pool, {"spec": {"replicas": replicas}})


def has_ids(count: int, pool: JSON) -> bool:
    """Return whether a pool lists so many provider IDs."""
    return len(provider_ids(pool)) == count


def has_machines(session: Session, kind: str, count: int) -> bool:
    """Return whether the main pool of a kind owns so many infrastructure machines."""
    return len(machine_objects(session, kind, main_name(kind))) == count


def machine_objects(session: Session, kind: str, name: str) -> list[JSON]:
    """Return the infrastructure machines that a pool owns."""
    pool = session.history.latest(kind, name)
    uid = pool["metadata"]["uid"] if pool else ""
    machine_kind = session.objects.machine_kind
    found = [
        session.history.latest(machine_kind, each) for each in session.history.names(machine_kind)
    ]
    return [
        each
        for each in found
        if each is not None
        and uid in [owner["uid"] for owner in each["metadata"].get("ownerReferences") or []]
    ]


def foreign_machines(session: Session, kind: str, ids: Iterable[str]) -> list[str]:
    """Return those of the provider IDs of a kind's main pool that another object has, too."""
    own = {each["metadata"]["name"] for each in machine_objects(session, kind, main_name(kind))}
    machine_kind = session.objects.machine_kind
    others = [name for name in session.history.names(machine_kind) if name not in own]
    taken = {provider_id(session.history.latest(machine_kind, name) or {}) for name in others}
    for other in session.objects.pool_kinds:
        for name in session.history.names(other):
            if (other, name) != (kind, main_name(kind)):
                taken |= set(provider_ids(session.history.latest(other, name) or {}))
    return sorted(taken & set(ids))


def refuse_pool_effects(session: Session, kind: str, name: str, reason: str) -> None:
    """Raise Violated if a pool shows an effect or has machines; ``reason`` says why not."""
    refuse_effects(session, kind, name, reason)
    for state in session.history.states(kind, name):
        if is_pool_provisioned(state):
            message = f"the manager wrote status.ready although {reason}"
            raise Violated(message, session.subject(kind, name), "status.ready")
    found = machine_objects(session, kind, name)
    if found:
        machine = found[0]["metadata"]["name"]
        message = f"the manager created {machine} although {reason}"
        raise Violated(message, session.subject(kind, name))


def _wait_complete(session: Session, kind: str) -> None:
    name = main_name(kind)
    session.wait(kind, name, is_pool_provisioned, "it never became provisioned", "status.ready")
    session.wait(
        kind,
        name,
        lambda pool: bool(provider_ids(pool)),
        "it lists no provider IDs",
        "spec.providerIDList",
    )


def _has_owner(obj: JSON) -> bool:
    return bool(obj["metadata"].get("ownerReferences"))
