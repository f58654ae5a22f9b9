"""Check machine pools: what they wait for, the status they report, and their machines.

:mod:`pool_changes` checks pools while they are scaled, restarted and deleted. Both modules use the
pools that this module creates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.shared import (
    MAIN,
    check_conditions,
    ensure_main_cluster,
    refer_to_missing_bootstrap,
    refuse_effects,
    wait_for_condition,
)
from capsmith.judge.running.contract import (
    PAUSED,
    V1BETA1,
    find_condition,
    is_pool_provisioned,
    is_provisioned,
    provider_id,
    provider_ids,
)
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.objects import CLUSTER_NAME, CORE_GROUP
from capsmith.judge.running.session import Session

POOL_NAME = f"{CORE_GROUP}/pool-name"
REPLICAS = 2
"""Number of replicas that each regular pool is created with."""


def main_name(kind: str) -> str:
    """Return the name of the given kind's regular pool."""
    return f"{MAIN}-{kind.lower()}"


def ownerless_name(kind: str) -> str:
    """Return the name of the given kind's pool without a MachinePool."""
    return f"ownerless-{kind.lower()}"


def waiting_name(kind: str) -> str:
    """Return the name of the given kind's pool without bootstrap data."""
    return f"{MAIN}-waiting-{kind.lower()}"


def paused_name(kind: str) -> str:
    """Return the name of the given kind's paused pool."""
    return f"{MAIN}-paused-{kind.lower()}"


def require_pool_kinds(session: Session) -> list[str]:
    """Return the machine pool kinds.

    Raises Skipped if there are none.
    """
    if not session.objects.pool_kinds:
        raise Skipped("no cluster template has a machine pool of the provider")
    return session.objects.pool_kinds


def create_pools(session: Session) -> None:
    """Create pools that the manager must leave alone, and then a regular pool of each kind.

    Later calls do nothing.
    """
    ensure_main_cluster(session)
    kinds = require_pool_kinds(session)

    def create() -> None:
        for kind in kinds:
            session.client.create(
                session.objects.pool(kind, MAIN, session.namespace, ownerless_name(kind))
            )
            session.create_paused_pool(kind, MAIN, paused_name(kind), PAUSED)
            session.create_pool(
                kind, MAIN, waiting_name(kind), 1, bootstrap=refer_to_missing_bootstrap(session)
            )
        # Before the main pools: until core has set an owner, a pool is left alone for that reason
        # only.
        for kind in kinds:
            session.wait(kind, waiting_name(kind), _has_owner, "core set no owner reference")
        for kind in kinds:
            session.create_pool(kind, MAIN, main_name(kind), REPLICAS)

    session.run_once("the creation of machine pools", create)


def ensure_pools(session: Session) -> None:
    """Wait until each kind's regular pool is provisioned, creating all pools first if necessary.

    The regular pools are created last, so once they are provisioned, the manager has had time to
    act on the pools that must wait.
    """
    create_pools(session)

    def complete() -> None:
        for kind in require_pool_kinds(session):
            _wait_complete(session, kind)
        session.settle()

    session.run_once("the provisioning of machine pools", complete)


def ensure_main_pool(session: Session, kind: str) -> JSON:
    """Return the given kind's regular pool once it is provisioned.

    The first call creates the pools of all kinds.  It raises Violated if any is not provisioned in
    time; later calls then raise Skipped.
    """
    ensure_pools(session)
    return session.latest(kind, main_name(kind))


def scale(session: Session, kind: str, replicas: int) -> None:
    """Set ``replicas`` on the given kind's regular MachinePool, without waiting."""
    pool = session.latest("MachinePool", main_name(kind))
    session.client.patch(pool, {"spec": {"replicas": replicas}})


def has_ids(count: int, pool: JSON) -> bool:
    """Return whether a pool lists exactly ``count`` provider IDs."""
    return len(provider_ids(pool)) == count


def has_machines(session: Session, kind: str, count: int) -> bool:
    """Return whether the given kind's regular pool owns ``count`` infrastructure machines."""
    return len(find_machine_objects(session, kind, main_name(kind))) == count


def find_machine_objects(session: Session, kind: str, name: str) -> list[JSON]:
    """Return the infrastructure machines owned by the pool named ``name``."""
    pool = session.history.latest(kind, name)
    # By owner and not by label, because the check of machine objects judges the labels.
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


def find_foreign_ids(session: Session, kind: str, ids: Iterable[str]) -> list[str]:
    """Return the provider IDs in a kind's regular pool that belong to another object as well."""
    own = {
        each["metadata"]["name"] for each in find_machine_objects(session, kind, main_name(kind))
    }
    machine_kind = session.objects.machine_kind
    others = [name for name in session.history.names(machine_kind) if name not in own]
    taken = {provider_id(session.history.latest(machine_kind, name) or {}) for name in others}
    for other in session.objects.pool_kinds:
        for name in session.history.names(other):
            if (other, name) != (kind, main_name(kind)):
                taken |= set(provider_ids(session.history.latest(other, name) or {}))
    return sorted(taken & set(ids))


def refuse_pool_effects(session: Session, kind: str, name: str, reason: str) -> None:
    """Raise Violated if a pool shows an external effect, is provisioned, or has machines.

    ``reason`` completes a message such as "the manager wrote ... although".
    """
    refuse_effects(session, kind, name, reason)
    for state in session.history.states(kind, name):
        if is_pool_provisioned(state):
            message = f"the manager wrote status.ready although {reason}"
            raise Violated(message, session.subject(kind, name), "status.ready")
    found = find_machine_objects(session, kind, name)
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


def check_each_pool(check: Callable[[Session, str], None]) -> Callable[[Session], None]:
    """Return a check that runs ``check`` for each pool kind and is skipped if there are none."""

    def run(session: Session) -> None:
        for kind in require_pool_kinds(session):
            check(session, kind)

    return run


def _provisioned(session: Session, kind: str) -> None:
    name = main_name(kind)
    ensure_main_pool(session, kind)
    what = "core does not report its infrastructure as provisioned"
    session.wait("MachinePool", name, _has_infrastructure, what, "status.ready")


def _initialized(session: Session, kind: str) -> None:
    pool = ensure_main_pool(session, kind)
    if session.contract != V1BETA1 and not is_provisioned(pool, session.contract):
        message = "status.ready is true, but the field of contract v1beta2 is not"
        where = session.subject(kind, main_name(kind))
        raise Violated(message, where, "status.initialization.provisioned")


def _ownerless(session: Session, kind: str) -> None:
    ensure_pools(session)
    refuse_pool_effects(session, kind, ownerless_name(kind), "no MachinePool owns the object")


def _waits_for_data(session: Session, kind: str) -> None:
    ensure_pools(session)
    name = waiting_name(kind)
    refuse_pool_effects(session, kind, name, "its MachinePool has no bootstrap data")
    session.provide_data(session.latest("MachinePool", name))
    session.wait(kind, name, is_pool_provisioned, "it never became provisioned", "status.ready")


def _paused(session: Session, kind: str) -> None:
    ensure_pools(session)
    name = paused_name(kind)
    refuse_pool_effects(session, kind, name, f"the object has the annotation {PAUSED}")
    if session.contract != V1BETA1:
        what, path = "the Paused condition is not True", "status.conditions[Paused]"
        session.wait(kind, name, partial(_is, "Paused"), what, path)
    pool = session.latest(kind, name)
    session.client.patch(pool, {"metadata": {"annotations": {PAUSED: None}}})
    session.wait(kind, name, is_pool_provisioned, "it is not provisioned after the pause")


def _provider_ids(session: Session, kind: str) -> None:
    ensure_main_pool(session, kind)
    name = main_name(kind)
    pool = session.wait(
        kind, name, partial(has_ids, REPLICAS), _ids(REPLICAS), "spec.providerIDList"
    )
    # IDs of other objects count as well, because a provider may list the same machines in two
    # pools.
    expected = provider_ids(pool)
    foreign = find_foreign_ids(session, kind, set(expected))
    if len(set(expected)) != len(expected) or foreign:
        message = f"duplicate provider ID: {', '.join([*expected, *foreign])}"
        raise Violated(message, session.subject(kind, name), "spec.providerIDList")
    what = "core did not copy the provider IDs to the MachinePool"
    session.wait("MachinePool", name, lambda each: set(provider_ids(each)) >= set(expected), what)


def _replicas(session: Session, kind: str) -> None:
    ensure_main_pool(session, kind)
    name = main_name(kind)
    what = f"it does not report {REPLICAS} replicas"
    session.wait(kind, name, partial(_has_replicas, REPLICAS), what, "status.replicas")
    what = f"core does not report {REPLICAS} replicas"
    session.wait("MachinePool", name, partial(_has_replicas, REPLICAS), what, "status.replicas")


def _machines(session: Session) -> None:
    """Check machine objects even if their pool is never provisioned, as they may be the cause."""
    create_pools(session)
    owners = 0
    for kind in require_pool_kinds(session):
        name = main_name(kind)
        # Either is sufficient: a pool that waits for wrong machine objects would never be
        # provisioned.
        session.history.wait(partial(_has_begun, session, kind), session.timing.patience)
        pool, found = session.latest(kind, name), find_machine_objects(session, kind, name)
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
    return is_complete or bool(find_machine_objects(session, kind, name))


def _check_machines(session: Session, kind: str) -> None:
    """Raise Violated unless a pool names its machine kind and has all machine objects."""
    name = main_name(kind)
    pool = ensure_main_pool(session, kind)
    if _machine_kind(pool) != session.objects.machine_kind:
        message = f"its machines are {_machine_kind(pool) or 'not named'}"
        raise Violated(message, session.subject(kind, name), "status.infrastructureMachineKind")
    complete = partial(has_machines, session, kind, REPLICAS)
    if not session.history.wait(complete, session.timing.patience):
        message = f"it never has {REPLICAS} machine objects"
        raise Violated(message, session.subject(kind, name))


def _check_machine(session: Session, pool: JSON, machine: JSON) -> None:
    """Raise Violated unless core creates a Machine for a machine object."""
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
    wait_for_condition(session, ensure_main_pool(session, kind), "Ready", "True")


def _conditions(session: Session, kind: str) -> None:
    ensure_main_pool(session, kind)
    check_conditions(session, kind, main_name(kind))


def _failures(session: Session, kind: str) -> None:
    ensure_pools(session)
    for name in session.history.all_names(kind):
        for state in session.history.states(kind, name):
            # In any state, because core panics as soon as it reads the field.
            for field in ("failureReason", "failureMessage"):
                if (state.get("status") or {}).get(field):
                    message = f"{field} has a value, over which core panics"
                    raise Violated(message, session.subject(kind, name), f"status.{field}")


def _machine_kind(pool: JSON) -> str:
    return str((pool.get("status") or {}).get("infrastructureMachineKind") or "")


def check_pools_with_machines(check: Callable[[Session, str], None]) -> Callable[[Session], None]:
    """Return a check that runs ``check`` for each pool kind whose machines are Machines."""

    def run(session: Session) -> None:
        kinds = [
            kind
            for kind in require_pool_kinds(session)
            if _machine_kind(ensure_main_pool(session, kind))
        ]
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
    return (find_condition(obj, kind) or {}).get("status") == "True"


MACHINE_POOLS = (
    ConformanceCheck(
        "pool-provisioned",
        "A machine pool becomes provisioned, and core reports it.",
        ("MP-01",),
        check_each_pool(_provisioned),
    ),
    ConformanceCheck(
        "pool-initialization",
        "A provisioned machine pool reports it in the field of the contract too.",
        ("MP-02",),
        check_each_pool(_initialized),
    ),
    ConformanceCheck(
        "pool-waits-for-owner",
        "A machine pool without a MachinePool is left alone.",
        ("IM-19",),
        check_each_pool(_ownerless),
    ),
    ConformanceCheck(
        "pool-waits-for-data",
        "A machine pool waits for the bootstrap data, then becomes provisioned.",
        ("IM-19",),
        check_each_pool(_waits_for_data),
    ),
    ConformanceCheck(
        "pool-paused",
        "A paused machine pool is left alone, and continues after the pause.",
        ("MP-20", "SM-01", "IM-19"),
        check_each_pool(_paused),
    ),
    ConformanceCheck(
        "pool-provider-ids",
        "A machine pool lists the provider ID of each machine, and core copies the list.",
        ("MP-03",),
        check_each_pool(_provider_ids),
    ),
    ConformanceCheck(
        "pool-replicas",
        "A machine pool reports how many machines it has.",
        ("MP-04",),
        check_each_pool(_replicas),
    ),
    ConformanceCheck(
        "pool-machines",
        "The machine objects of a pool have the labels and the owner with which core finds them.",
        ("MP-07", "MP-08", "MP-09"),
        _machines,
    ),
    ConformanceCheck(
        "pool-ready",
        "A provisioned machine pool has the condition Ready.",
        ("MP-14",),
        check_each_pool(_ready),
    ),
    ConformanceCheck(
        "pool-conditions",
        "The conditions of a machine pool have the shape of the contract.",
        ("ST-01", "ST-02"),
        check_each_pool(_conditions),
    ),
    ConformanceCheck(
        "pool-failures",
        "A machine pool never reports the failures of old contracts.",
        ("MP-13",),
        check_each_pool(_failures),
    ),
)
