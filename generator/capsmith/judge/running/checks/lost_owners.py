"""Check that missing owner references are restored, as needed after restoring a backup (SM-11)."""

from __future__ import annotations

from functools import partial

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import eventually
from capsmith.judge.running.cluster_session import WHOLE, ClusterSession, data_name
from capsmith.judge.running.contract import PAUSED, V1BETA1, find_condition
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated


def _bootstrap(session: ClusterSession) -> None:
    configs = [config for _, config in session.configs()]
    if not configs:
        raise Skipped("no Machine has a bootstrap configuration of this provider")
    config = configs[0]
    secret = session.client.get("v1", "Secret", data_name(config), session.namespace)
    _require_restored(session, config, [secret])


def _control_plane(session: ClusterSession) -> None:
    session.ensure_whole_cluster()
    owner = session.latest(session.control_plane_kind, session.control_plane_name)
    kubeconfig = session.client.find("v1", "Secret", f"{WHOLE}-kubeconfig", session.namespace)
    found = [*session.members(), *([kubeconfig] if kubeconfig is not None else [])]
    _require_restored(session, owner, found)


def _require_restored(session: ClusterSession, owner: JSON, objects: list[JSON]) -> None:
    """Remove the objects' owner references while the owner is paused, as a backup tool does.

    Raises Violated unless the references come back after the owner is resumed, and Skipped if the
    objects have another owner.
    """
    owned = [each for each in objects if _is_owned(each, owner)]
    if not owned:
        raise Skipped("these objects have another owner")
    _pause(session, owner, "true")
    try:
        for each in owned:
            session.client.patch(each, {"metadata": {"ownerReferences": None}})
    finally:
        _pause(session, owner, None)
    for each in owned:
        _wait_owned(session, owner, each)


def _pause(session: ClusterSession, owner: JSON, value: str | None) -> None:
    session.client.patch(owner, {"metadata": {"annotations": {PAUSED: value}}})
    if session.contract == V1BETA1:
        session.settle()  # the contract does not fix where the Paused condition is
        return
    status = "True" if value else "False"
    what, path = f"the condition Paused is not {status}", "status.conditions[Paused]"
    probe = partial(_is_paused, status)
    session.wait(owner["kind"], owner["metadata"]["name"], probe, what, path)


def _wait_owned(session: ClusterSession, owner: JSON, obj: JSON) -> None:
    kind, name = obj["kind"], obj["metadata"]["name"]

    def is_restored() -> bool:
        found = session.client.find(obj["apiVersion"], kind, name, session.namespace)
        return found is not None and _is_owned(found, owner)

    try:
        eventually(is_restored, timeout=session.timing.patience)
    except TimeoutError as error:
        references = obj["metadata"]["ownerReferences"]
        session.client.patch(obj, {"metadata": {"ownerReferences": references}})
        message = f"{owner['kind']} {owner['metadata']['name']} does not own it again"
        raise Violated(message, session.subject(kind, name), "metadata.ownerReferences") from error


def _is_owned(obj: JSON, owner: JSON) -> bool:
    references = obj["metadata"].get("ownerReferences") or []
    return any(each["uid"] == owner["metadata"]["uid"] for each in references)


def _is_paused(status: str, obj: JSON) -> bool:
    return (find_condition(obj, "Paused") or {}).get("status") == status


LOST_OWNERS = (
    ConformanceCheck(
        "bootstrap-lost-owner",
        "A bootstrap configuration owns its data again after the owner reference was lost.",
        ("SM-11",),
        _bootstrap,
    ),
    ConformanceCheck(
        "control-plane-lost-owner",
        "A control plane owns Machines and kubeconfig again after owner references were lost.",
        ("SM-11",),
        _control_plane,
    ),
)
