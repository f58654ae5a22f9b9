"""Check that unprovisioned objects, machines and clusters can be deleted."""

from __future__ import annotations

from capsmith.judge.running.checks.shared import (
    BLOCKED,
    MAIN,
    ensure_blocked,
    ensure_main_machine,
    register_nodes,
)
from capsmith.judge.running.contract import is_provisioned
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.session import SECRET, Session

_DELETED = "main-deleted"
_WORKERS = "main-workers"
_CLUSTER = "deleted"
_CLUSTER_MACHINE = "deleted-0"
_REMEDIATE = "cluster.x-k8s.io/remediate-machine"


def _early(session: Session) -> None:
    ensure_blocked(session)
    # Delete the Machine, as users do; core then deletes the infrastructure machine.
    session.client.delete(session.latest("Machine", BLOCKED))
    kind = session.objects.machine_kind
    session.wait_deleted(
        kind, BLOCKED, "it was deleted before anything was created, but still exists"
    )


def _machine(session: Session) -> None:
    ensure_main_machine(session)
    kind = session.objects.machine_kind
    # A separate machine, because later checks need the first one.
    session.create_machine(MAIN, _DELETED)
    session.wait_provisioned(kind, _DELETED)
    session.client.delete(session.latest("Machine", _DELETED))
    session.wait_deleted(kind, _DELETED, "its Machine was deleted, but it still exists")


def _remediation(session: Session) -> None:
    if not session.kubeconfig:
        raise Skipped(
            "a MachineHealthCheck needs Nodes, which are only created by a run with its own"
            " management cluster"
        )
    ensure_main_machine(session)
    kind = session.objects.machine_kind
    template = session.objects.template(MAIN, session.namespace, _WORKERS)
    session.client.create(template)
    session.client.create(session.core.deployment(MAIN, _WORKERS, template, SECRET))
    session.client.create(session.core.health_check(MAIN, _WORKERS))
    # Provisioned and with a Node: a health check treats Machines that never had a Node differently.
    old = _wait_worker(session, "")
    session.client.patch(
        session.latest("Machine", old), {"metadata": {"annotations": {_REMEDIATE: ""}}}
    )
    session.wait_deleted(kind, old, "its Machine is remediated, but it still exists")
    _wait_worker(session, old)


def _wait_worker(session: Session, old: str) -> str:
    """Wait until the MachineDeployment has a provisioned Machine other than ``old``."""
    kind = session.objects.machine_kind

    def found() -> str:
        names = (name for name in session.history.names(kind) if name.startswith(f"{_WORKERS}-"))
        return next((name for name in names if name != old and _is_running(session, name)), "")

    name = session.history.wait(found, session.timing.patience)
    if not name:
        message = f"core created no provisioned machine from the template {_WORKERS}"
        raise Violated(message, f"{kind} {session.namespace}/{_WORKERS}-…")
    register_nodes(session)
    return name


def _is_running(session: Session, name: str) -> bool:
    obj = session.history.latest(session.objects.machine_kind, name)
    return obj is not None and is_provisioned(obj, session.contract)


def _cluster(session: Session) -> None:
    ensure_main_machine(session)
    # A separate cluster with a machine: core deletes machines first, and then the infrastructure.
    session.create_cluster(_CLUSTER)
    session.wait_provisioned(session.objects.cluster_kind, _CLUSTER)
    session.create_machine(_CLUSTER, _CLUSTER_MACHINE)
    session.wait_provisioned(session.objects.machine_kind, _CLUSTER_MACHINE)
    session.client.delete(session.latest("Cluster", _CLUSTER))
    what = "its Cluster was deleted, but it still exists"
    session.wait_deleted(session.objects.machine_kind, _CLUSTER_MACHINE, what)
    session.wait_deleted(session.objects.cluster_kind, _CLUSTER, what)
    session.wait_deleted("Cluster", _CLUSTER, "core does not delete it")


DELETING = (
    ConformanceCheck(
        "delete-early",
        "The deletion of an infrastructure machine that was never created succeeds.",
        ("IM-25",),
        _early,
    ),
    ConformanceCheck(
        "delete-machine",
        "The deletion of an infrastructure machine ends with the removal of its finalizer.",
        ("IM-25", "SM-08"),
        _machine,
    ),
    ConformanceCheck(
        "remediation",
        "A machine that a MachineHealthCheck finds unhealthy is deleted and replaced.",
        ("IM-25", "IM-12"),
        _remediation,
    ),
    ConformanceCheck(
        "delete-cluster",
        "The deletion of a Cluster deletes its machines, then its infrastructure cluster.",
        ("IC-20", "SM-04"),
        _cluster,
    ),
)
