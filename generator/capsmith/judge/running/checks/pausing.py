"""Check that paused clusters and machines are left unchanged, even if they are being deleted.

The checks for pools are in `pools.py`.
"""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import MAIN, ensure_main_machine, refuse_effects
from capsmith.judge.running.contract import PAUSED, V1BETA1, find_condition
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.session import Session

_CLUSTER = "paused"
_ANNOTATED = "main-paused"
_CONTROL = "main-pause-control"
_DELETED = "main-paused-deletion"
_LATER = "main-pause-later"


def _objects(session: Session) -> None:
    """Create paused objects, then a machine that is provisioned after them."""
    ensure_main_machine(session)

    def create() -> None:
        session.create_paused_cluster(_CLUSTER)
        session.create_paused_machine(MAIN, _ANNOTATED, PAUSED)
        session.create_machine(MAIN, _CONTROL)
        session.wait_provisioned(session.objects.machine_kind, _CONTROL)
        session.settle()

    session.run_once("the provisioning of a machine beside paused objects", create)


def _paused_cluster(session: Session) -> None:
    _objects(session)
    kind = session.objects.cluster_kind
    refuse_effects(session, kind, _CLUSTER, "spec.paused of the Cluster is true")
    if session.contract != V1BETA1:
        session.wait(kind, _CLUSTER, _is_paused, "the Paused condition is not True", _PATH)
    cluster = session.latest("Cluster", _CLUSTER)
    # Afterwards it must continue: otherwise a manager that never acts would pass as one that is
    # paused.
    session.client.patch(cluster, {"spec": {"paused": False}})
    session.wait_provisioned(kind, _CLUSTER)


def _paused_machine(session: Session) -> None:
    _objects(session)
    kind = session.objects.machine_kind
    refuse_effects(session, kind, _ANNOTATED, f"the object has the annotation {PAUSED}")


def _condition(session: Session) -> None:
    if session.contract == V1BETA1:
        raise Skipped("contract v1beta1 does not fix where the Paused condition is")
    _objects(session)
    kind = session.objects.machine_kind
    session.wait(kind, _ANNOTATED, _is_paused, "the Paused condition is not True", _PATH)
    _unpause(session, session.latest(kind, _ANNOTATED))
    session.wait(kind, _ANNOTATED, _is_resumed, "the Paused condition is not False", _PATH)


def _deletion(session: Session) -> None:
    ensure_main_machine(session)
    kind = session.objects.machine_kind
    session.create_machine(MAIN, _DELETED)
    machine = session.wait_provisioned(kind, _DELETED)
    # Without a finalizer, the API server removes the object immediately, and no manager can wait.
    if not machine["metadata"].get("finalizers"):
        raise Skipped("the object has no finalizer, so its deletion cannot wait")
    # Paused before the deletion: otherwise the manager might already have finished it.
    session.client.patch(machine, {"metadata": {"annotations": {PAUSED: "true"}}})
    if session.contract != V1BETA1:
        session.wait(kind, _DELETED, _is_paused, "the Paused condition is not True", _PATH)
    session.client.delete(machine)
    # Once a later machine is provisioned, the manager has had time for the deletion.
    session.create_machine(MAIN, _LATER)
    session.wait_provisioned(kind, _LATER)
    if not session.stays(lambda: _has_finalizer(session, kind)):
        message = "the manager completed the deletion of a paused object"
        raise Violated(message, session.subject(kind, _DELETED), "metadata.finalizers")
    _unpause(session, session.latest(kind, _DELETED))
    session.wait_deleted(kind, _DELETED, "it was not deleted after the end of the pause")


def _has_finalizer(session: Session, kind: str) -> bool:
    obj = session.history.latest(kind, _DELETED)
    return obj is not None and bool(obj["metadata"].get("finalizers"))


def _unpause(session: Session, obj: JSON) -> None:
    session.client.patch(obj, {"metadata": {"annotations": {PAUSED: None}}})


def _is_paused(obj: JSON) -> bool:
    found = find_condition(obj, "Paused")
    return found is not None and found.get("status") == "True"


def _is_resumed(obj: JSON) -> bool:
    """Return whether the Paused condition no longer reports that the object is paused."""
    return not _is_paused(obj)


_PATH = "status.conditions[Paused]"

PAUSING = (
    ConformanceCheck(
        "pause-cluster",
        "Objects of a paused Cluster are left alone, and continue after the pause.",
        ("SM-01", "IC-23"),
        _paused_cluster,
    ),
    ConformanceCheck(
        "pause-annotation",
        "An object with the annotation cluster.x-k8s.io/paused is left alone.",
        ("SM-01", "IM-19"),
        _paused_machine,
    ),
    ConformanceCheck(
        "pause-condition",
        "The condition Paused follows the pause.",
        ("ST-08",),
        _condition,
    ),
    ConformanceCheck(
        "pause-deletion",
        "The deletion of a paused object waits for the end of the pause.",
        ("MV-08", "SM-01"),
        _deletion,
    ),
)
