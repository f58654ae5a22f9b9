"""Check that another manager can take over, after a crash or after `clusterctl move`.

In both cases an object's status may be lost, but its machines must not be.
"""

from __future__ import annotations

from capsmith.clusters.processes.errors import ClusterctlError
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.checks.shared import FIRST, MAIN, ensure_main_machine, register_nodes
from capsmith.judge.running.contract import is_provisioned, provider_id
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.session import Session, resume_all

_INTERRUPTED = "main-interrupted"
_LATER = "main-after-restart"


def _restart(session: Session) -> None:
    if session.manager is None:
        raise Skipped("this run did not start the manager")
    before = ensure_main_machine(session)
    kind = session.objects.machine_kind
    session.create_machine(MAIN, _INTERRUPTED)
    # Killed during the creation, when a call may have been made but not recorded.
    started = session.history.wait(
        lambda: len(session.history.states(kind, _INTERRUPTED)) > 1, session.timing.patience
    )
    if not started:
        raise Violated("the manager did not react to it", session.subject(kind, _INTERRUPTED))
    session.manager.kill()
    session.manager.start()
    session.wait_provisioned(kind, _INTERRUPTED)
    # Once a machine created after the restart is provisioned, the manager has seen all earlier
    # ones.
    session.create_machine(MAIN, _LATER)
    session.wait_provisioned(kind, _LATER)
    session.settle()
    _require_same(session, kind, FIRST, provider_id(before))
    ids = [provider_id(each) for each in session.history.states(kind, _INTERRUPTED)]
    _require_same(session, kind, _INTERRUPTED, next(each for each in ids if each))


def _require_same(session: Session, kind: str, name: str, expected: str) -> None:
    for state in session.history.states(kind, name):
        found = provider_id(state)
        if found and found != expected:
            message = f"after a restart its provider ID is {found} instead of {expected}"
            raise Violated(message, session.subject(kind, name), "spec.providerID")


RESTARTING = (
    ConformanceCheck(
        "restart",
        "A manager that crashes continues after its restart, and creates nothing twice.",
        ("SM-09",),
        _restart,
    ),
)


def _move(session: Session) -> None:
    if session.mover is None:
        raise Skipped("this run did not start the management clusters")
    before = ensure_main_machine(session)
    _leave_only_main(session)
    # clusterctl refuses to move a cluster whose Machines do not have Nodes yet.
    register_nodes(session)
    session.wait("Cluster", MAIN, _is_initialized, "core does not report an initialized cluster")
    try:
        target = session.moved_to = session.mover.start_target()
        session.mover.move(session.namespace)
    except ClusterctlError as error:
        raise Violated(str(error)) from error
    machine = _wait_provisioned(session, target)
    if provider_id(machine) != provider_id(before):
        message = (
            f"after the move its provider ID is {provider_id(machine)}"
            f" instead of {provider_id(before)}"
        )
        raise Violated(message, session.subject(machine["kind"], FIRST), "spec.providerID")
    _delete_there(session, target)


_NOT_DELETED = "it was not deleted before the move"


def _leave_only_main(session: Session) -> None:
    """Delete all other Clusters and Machines, because clusterctl only moves complete ones."""
    resume_all(session, session.client)
    _delete_deployments(session)
    cluster_kind, machine_kind = session.objects.cluster_kind, session.objects.machine_kind
    for kind, kept in (("Machine", FIRST), ("Cluster", MAIN)):
        others = _list_others(session, kind, kept)
        for obj in others:
            session.client.delete(obj)
        for obj in others:
            session.wait_deleted(kind, obj["metadata"]["name"], _NOT_DELETED)
    pools = [(kind, "") for kind in session.objects.pool_kinds]
    for kind, kept in (*pools, (machine_kind, FIRST), (cluster_kind, MAIN)):
        for obj in _list_others(session, kind, kept):
            session.client.delete(obj)
            session.wait_deleted(kind, obj["metadata"]["name"], _NOT_DELETED)


def _list_others(session: Session, kind: str, kept: str) -> list[JSON]:
    # The states are read before the first deletion, which can cause that of others.
    return [obj for obj in session.list_existing(kind) if obj["metadata"]["name"] != kept]


def _delete_deployments(session: Session) -> None:
    core, namespace = session.core.api_version, session.namespace
    for kind in ("MachineDeployment", "MachinePool"):
        for each in session.client.list(core, kind, namespace):
            session.client.delete(each)

    def deleted() -> bool:
        kinds = ("MachineSet", "MachinePool")
        return not any(session.client.list(core, kind, namespace) for kind in kinds)

    what = "MachineSets and MachinePools deleted"
    try:
        eventually(deleted, timeout=session.timing.patience, what=what)
    except TimeoutError as error:
        raise Violated(str(error)) from error


def _wait_provisioned(session: Session, target: KubeClient) -> JSON:
    objects = session.objects

    def provisioned() -> JSON:
        kinds = (
            (objects.cluster_version, objects.cluster_kind, MAIN),
            (objects.machine_version, objects.machine_kind, FIRST),
        )
        found: JSON = {}
        for version, kind, name in kinds:
            found = target.find(version, kind, name, session.namespace) or {}
            if not found:
                raise NotYet(f"{kind} {name} was not moved")
            if not is_provisioned(found, session.contract):
                raise NotYet(f"{kind} {name} is not provisioned at the target")
        return found

    try:
        return eventually(provisioned, timeout=session.timing.patience)
    except TimeoutError as error:
        raise Violated(str(error), session.subject(objects.machine_kind, FIRST)) from error


def _delete_there(session: Session, target: KubeClient) -> None:
    core, namespace = session.core.api_version, session.namespace

    def deleted() -> bool:
        cluster = target.find(core, "Cluster", MAIN, namespace)
        if cluster is None:
            return True
        if "deletionTimestamp" not in cluster["metadata"]:
            target.delete(cluster)
        raise NotYet("the Cluster still exists")

    try:
        eventually(deleted, timeout=session.timing.patience)
    except TimeoutError as error:
        where = session.subject("Cluster", MAIN)
        raise Violated(f"after the move it cannot be deleted: {error}", where) from error


def _is_initialized(cluster: JSON) -> bool:
    status = cluster.get("status") or {}
    if (status.get("initialization") or {}).get("controlPlaneInitialized"):
        return True
    conditions = status.get("conditions") or []
    return any(
        (each["type"], each["status"]) == ("ControlPlaneInitialized", "True") for each in conditions
    )


MOVING = (
    ConformanceCheck(
        "move",
        "After clusterctl move the other manager continues with the same machines.",
        ("MV-02", "MV-08", "ST-11"),
        _move,
    ),
)
