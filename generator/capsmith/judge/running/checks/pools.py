"""Machine pools: what they wait for, what they report, and their machines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.pool_steps import (
    POOL_NAME,
    REPLICAS,
    created_pools,
    foreign_machines,
    has_ids,
    has_machines,
    machine_objects,
    main_name,
    main_pool,
    ownerless_name,
    paused_name,
    pool_kinds,
    pools,
    refuse_pool_effects,
    waiting_name,
)
from capsmith.judge.running.checks.shared import MAIN, check_conditions, require_condition
from capsmith.judge.running.contract import (
    PAUSED,
    V1BETA1,
    condition,
    is_pool_provisioned,
    is_provisioned,
    provider_ids,
)
from capsmith.judge.running.model import Check, Skipped, Violated
from capsmith.judge.running.objects import CLUSTER_NAME
from capsmith.judge.running.session import Session


def each_pool(check: Callable[[Session, str], None]) -> Callable[[Session], None]:
    """Return a check of all kinds of pools; it is skipped without one."""

    def run(session: Session) -> None:
        for kind in pool_kinds(session):
            check(session, kind)

    return run


def _provisioned(session: Session, kind: str) -> None:
    name = main_name(kind)
    main_pool(session, kind)
    what = "core does not report its infrastructure as provisioned"
    session.wait("MachinePool", name, _has_infrastructure, what, "status.ready")


def _initialized(session: Session, kind: str) -> None:
    pool = main_pool(session, kind)
    if session.contract != V1BETA1 and not is_provisioned(pool, session.contract):
        message = "status.ready is true, but the field of contract v1beta2 is not"
        where = session.subject(kind, main_name(kind))
        raise Violated(message, where, "status.initialization.provisioned")


def _ownerless(session: Session, kind: str) -> None:
    pools(session)
    refuse_pool_effects(session, kind, ownerless_name(kind), "no MachinePool owns the object")


def _waits_for_data(session: Session, kind: str) -> None:
    pools(session)
    name = waiting_name(kind)
    refuse_pool_effects(session, kind, name, "its MachinePool has no bootstrap data")
    session.provide_data(session.latest("MachinePool", name))
    session.wait(kind, name, is_pool_provisioned, "it never became provisioned", "status.ready")


def _paused(session: Session, kind: str) -> None:
    pools(session)
    name = paused_name(kind)
    refuse_pool_effects(session, kind, name, f"the object has the annotation {PAUSED}")
    if session.contract != V1BETA1:
        what, path = "the Paused condition is not True", "status.conditions[Paused]"
        session.wait(kind, name, partial(_is, "Paused"), what, path)
    pool = session.latest(kind, name)
    session.client.patch(pool, {"metadata": {"annotations": {PAUSED: None}}})
    session.wait(kind, name, is_pool_provisioned, "it is not provisioned after the pause")


def _provider_ids(session: Session, kind: str) -> None:
    main_pool(session, kind)
    name = main_name(kind)
    pool = session.wait(
        kind, name, partial(has_ids, REPLICAS), _ids(REPLICAS), "spec.providerIDList"
    )
    expected = provider_ids(pool)
    foreign = foreign_machines(session, kind, set(expected))
    if len(set(expected)) != len(expected) or foreign:
        message = f"duplicate provider ID: {', '.join([*expected, *foreign])}"
        raise Violated(message, session.subject(kind, name), "spec.providerIDList")
    what = "core did not copy the provider IDs to the MachinePool"
    session.wait("MachinePool", name, lambda each: set(provider_ids(each)) >= set(expected), what)


def _replicas(session: Session, kind: str) -> None:
    main_pool(session, kind)
    name = main_name(kind)
    what = f"it does not report {REPLICAS} replicas"
    session.wait(kind, name, partial(_has_replicas, REPLICAS), what, "status.replicas")
    what = f"core does not report {REPLICAS} replicas"
    session.wait("MachinePool", name, partial(_has_replicas, REPLICAS), what, "status.replicas")


def _machines(session: Session) -> None:
    """Judge machine objects even if their pool is never provisioned, for they may be why."""
    created_pools(session)
    owners = 0
    for kind in pool_kinds(session):
        name = main_name(kind)
        session.history.wait(partial(_has_begun, session, kind), session.timing.patience)
        pool, found = session.latest(kind, name), machine_objects(session, kind, name)
        for each in found:
            _check_machine(session, pool, each)
        owners += bool(found)
        if found or _machine_kind(pool):
            _check_machines(session, kind)
    if not owners:
        raise Skipped("no pool has machine objects")


def _has_begun(session: Session, kind: str) -> bool:
    """Return whether a pool has machine objects, or is provisioned without any."""
    name = main_name(kind)
    is_complete = is_pool_provisioned(session.history.latest(kind, name) or {})
    return is_complete or bool(machine_objects(session, kind, name))


def _check_machines(session: Session, kind: str) -> None:
    """Raise Violated unless a pool names the kind of its machine objects and has all of them."""
    name = main_name(kind)
    pool = main_pool(session, kind)
    if _machine_kind(pool) != session.objects.machine_kind:
        message = f"its machines are {_machine_kind(pool) or 'not named'}"
        raise Violated(message, session.subject(kind, name), "status.infrastructureMachineKind")
    complete = partial(has_machines, session, kind, REPLICAS)
    if not session.history.wait(complete, session.timing.patience):
        message = f"it never has {REPLICAS} machine objects"
        raise Violated(message, session.subject(kind, name))


def _check_machine(session: Session, pool: JSON, machine: JSON) -> None:
    """Raise Violated unless core makes a Machine for a machine object."""
    metadata = machine["metadata"]
    where = session.subject(machine["kind"], metadata["name"])
    expected = {CLUSTER_NAME: MAIN, POOL_NAME: pool["metadata"]["name"]}
    labels = metadata.get("labels") or {}
    for label, value in expected.items():
        if labels.get(label) != value:
            raise Violated(f"the label {label} is not {value}", where, "metadata.labels")
    owners = [
        each for each in metadata["ownerReferences"] if each["uid"] == pool["metadata"]["uid"]
    ]
    if not owners or owners[0].get("controller"):
        message = "the pool controls it, so that its Machine cannot"
        raise Violated(message, where, "metadata.ownerReferences")
    what = "core creates no Machine for it"
    session.wait("Machine", metadata["name"], bool, what)


def _ready(session: Session, kind: str) -> None:
    require_condition(session, main_pool(session, kind), "Ready", "True")


def _conditions(session: Session, kind: str) -> None:
    main_pool(session, kind)
    check_conditions(session, kind, main_name(kind))


def _failures(session: Session, kind: str) -> None:
    pools(session)
    for name in session.history.all_names(kind):
        for state in session.history.states(kind, name):
            for field in ("failureReason", "failureMessage"):
                if (state.get("status") or {}).get(field):
                    message = f"{field} has a value, over which core panics"
                    raise Violated(message, session.subject(kind, name), f"status.{field}")


def _machine_kind(pool: JSON) -> str:
    return str((pool.get("status") or {}).get("infrastructureMachineKind") or "")


def with_machines(check: Callable[[Session, str], None]) -> Callable[[Session], None]:
    """Return a check of the kinds of pools whose machines have Machines."""

    def run(session: Session) -> None:
        kinds = [kind for kind in pool_kinds(session) if _machine_kind(main_pool(session, kind))]
        if not kinds:
            raise Skipped("no pool has Machines: none names an infrastructureMachineKind")
        for kind in kinds:
            check(session, kind)

    return run


def _has_infrastructure(pool: JSON) -> bool:
    status = pool.get("status") or {}
    created = (status.get("initialization") or {}).get("infrastructureProvisioned")
    return bool(created or status.get("infrastructureReady"))


def _has_replicas(count: int, obj: JSON) -> bool:
    return (obj.get("status") or {}).get("replicas") == count


def _ids(count: int) -> str:
    return f"it does not list {count} provider IDs"


def _is(kind: str, obj: JSON) -> bool:
    return (condition(obj, kind) or {}).get("status") == "True"


MACHINE_POOLS = (
    Check(
        "pool-provisioned",
        "A machine pool becomes provisioned, and core reports it.",
        ("MP-01",),
        each_pool(_provisioned),
    ),
    Check(
        "pool-initialization",
        "A provisioned machine pool reports it in the field of the contract too.",
        ("MP-02",),
        each_pool(_initialized),
    ),
    Check(
        "pool-waits-for-owner",
        "A machine pool without a MachinePool is left alone.",
        ("IM-19",),
        each_pool(_ownerless),
    ),
    Check(
        "pool-waits-for-data",
        "A machine pool waits for the bootstrap data, then becomes provisioned.",
        ("IM-19",),
        each_pool(_waits_for_data),
    ),
    Check(
        "pool-paused",
        "A paused machine pool is left alone, and continues after the pause.",
        ("MP-20", "SM-01", "IM-19"),
        each_pool(_paused),
    ),
    Check(
        "pool-provider-ids",
        "A machine pool lists the provider ID of each machine, and core copies the list.",
        ("MP-03",),
        each_pool(_provider_ids),
    ),
    Check(
        "pool-replicas",
        "A machine pool reports how many machines it has.",
        ("MP-04",),
        each_pool(_replicas),
    ),
    Check(
        "pool-machines",
        "The machine objects of a pool have the labels and the owner with which core finds them.",
        ("MP-07", "MP-08", "MP-09"),
        _machines,
    ),
    Check(
        "pool-ready",
        "A provisioned machine pool has the condition Ready.",
        ("MP-14",),
        each_pool(_ready),
    ),
    Check(
        "pool-conditions",
        "The conditions of a machine pool have the shape of the contract.",
        ("ST-01", "ST-02"),
        each_pool(_conditions),
    ),
    Check(
        "pool-failures",
        "A machine pool never reports the failures of old contracts.",
        ("MP-13",),
        each_pool(_failures),
    ),
)
