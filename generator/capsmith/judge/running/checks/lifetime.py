"""Check invariants over the whole lifetime of all objects, using their recorded states."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import FIRST, MAIN, ensure_main_machine
from capsmith.judge.running.contract import (
    MANAGED_BY,
    find_condition,
    find_effects,
    is_provisioned,
    provider_id,
    provisioned_path,
)
from capsmith.judge.running.model import ConformanceCheck, Violated
from capsmith.judge.running.session import Session

_OWNERS = ("Cluster", "Machine", "MachinePool")


def _finalizer(session: Session) -> None:
    for kind, name, states in _lives(session):
        for state in states:
            metadata = state["metadata"]
            # Objects that are managed externally have no finalizer of this manager, because it does
            # nothing for them.
            if MANAGED_BY in (metadata.get("annotations") or {}):
                continue
            found = find_effects(state, session.contract, states[0])
            if found and not metadata.get("finalizers") and "deletionTimestamp" not in metadata:
                message = f"it has {found[0]}, but no finalizer"
                raise Violated(message, session.subject(kind, name), "metadata.finalizers")


def _provisioned_once(session: Session) -> None:
    path = provisioned_path(session.contract)
    for kind, name, states in _lives(session):
        reports = [is_provisioned(state, session.contract) for state in states]
        if True in reports and False in reports[reports.index(True) :]:
            message = "it was provisioned, but no longer is"
            raise Violated(message, session.subject(kind, name), path)


def _provider_ids(session: Session) -> None:
    owners: dict[str, tuple[str, str]] = {}
    for kind, name, states in _lives(session):
        for state in states:
            found = provider_id(state)
            uid = str(state["metadata"]["uid"])
            if found and owners.setdefault(found, (uid, name)) != (uid, name):
                message = f"provider ID {found} is also that of {owners[found][1]}"
                raise Violated(message, session.subject(kind, name), "spec.providerID")
        _require_constant(session, (kind, name), states, provider_id)


def _require_constant(
    session: Session, key: tuple[str, str], states: list[JSON], read: Callable[[JSON], str]
) -> None:
    before: dict[str, str] = {}
    for state in states:
        uid, value = str(state["metadata"]["uid"]), read(state)
        # By uid, because a pool may create another machine with the same name.
        if uid in before and before[uid] and value != before[uid]:
            message = f"the provider ID changed from {before[uid]} to {value or 'nothing'}"
            raise Violated(message, session.subject(*key), "spec.providerID")
        before[uid] = value


def _owners_kept(session: Session) -> None:
    for kind, name, states in _lives(session):
        owners: set[tuple[str, str]] = set()
        for state in states:
            if "deletionTimestamp" in state["metadata"]:
                break
            references = state["metadata"].get("ownerReferences") or []
            uid = str(state["metadata"]["uid"])
            # Core itself replaces a MachineSet with the Machine.
            kept = [each for each in references if each["kind"] in _OWNERS]
            now = {(uid, str(each["uid"])) for each in kept}
            if {owner for owner in owners if owner[0] == uid} - now:
                message = "an owner reference that core set was removed"
                raise Violated(message, session.subject(kind, name), "metadata.ownerReferences")
            owners |= now


def _spec_kept(session: Session) -> None:
    for kind, name, states in _lives(session):
        created = states[0].get("spec") or {}
        for state in states[1:]:
            spec = state.get("spec") or {}
            for key, value in created.items():
                # A zero value counts as missing, because providers may fill in their defaults.
                if value not in (None, "", 0, {}, []) and spec.get(key) != value:
                    if key == "controlPlaneEndpoint":
                        continue  # a template may set the port only
                    message = f"the manager changed {key} from {value!r} to {spec.get(key)!r}"
                    raise Violated(message, session.subject(kind, name), f"spec.{key}")


def _steady(session: Session) -> None:
    ensure_main_machine(session)
    objects = session.objects
    for kind, name in ((objects.cluster_kind, MAIN), (objects.machine_kind, FIRST)):
        states = [state for state in session.history.states(kind, name) if _is_ready(state)]
        messages = [
            str((find_condition(state, "Ready") or {}).get("message", "")) for state in states
        ]
        if len(set(messages)) > 1:
            shown = ", ".join(repr(each) for each in list(dict.fromkeys(messages))[:2])
            message = f"the message of Ready changes without a cause: {shown}"
            raise Violated(message, session.subject(kind, name), "status.conditions[Ready]")


def _is_ready(obj: JSON) -> bool:
    return (find_condition(obj, "Ready") or {}).get("status") == "True"


def _lives(session: Session) -> Iterator[tuple[str, str, list[JSON]]]:
    """Yield kind, name and recorded states of each infrastructure object."""
    ensure_main_machine(session)
    session.run_once("a quiet time", session.settle)
    for _, kind in session.provider_kinds():
        for name in session.history.all_names(kind):
            states = session.history.states(kind, name)
            if states:
                yield kind, name, states


LIFETIME = (
    ConformanceCheck(
        "finalizer-first",
        "An object has its finalizer before its first effect.",
        ("SM-08",),
        _finalizer,
    ),
    ConformanceCheck(
        "provisioned-once",
        "A provisioned object stays provisioned.",
        ("IC-05", "IM-03"),
        _provisioned_once,
    ),
    ConformanceCheck(
        "provider-id-constant",
        "Provider IDs are unique and never change.",
        ("IM-01", "IM-02"),
        _provider_ids,
    ),
    ConformanceCheck(
        "owners-kept",
        "The manager keeps the owner references of core.",
        ("SM-06",),
        _owners_kept,
    ),
    ConformanceCheck(
        "spec-kept",
        "The manager does not change what others wrote into the spec.",
        ("TP-06",),
        _spec_kept,
    ),
    ConformanceCheck(
        "ready-steady",
        "The message of Ready does not vary without a cause.",
        ("ST-06",),
        _steady,
    ),
)
