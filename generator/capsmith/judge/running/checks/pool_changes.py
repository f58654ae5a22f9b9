"""Check changes to machine pools: scaling, external scaling, crashes and deletion."""

from __future__ import annotations

import itertools
from functools import partial

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.pools import (
    REPLICAS,
    check_each_pool,
    check_pools_with_machines,
    ensure_main_pool,
    find_machine_objects,
    has_ids,
    has_machines,
    main_name,
    paused_name,
    require_pool_kinds,
    scale,
    waiting_name,
)
from capsmith.judge.running.contract import provider_ids
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.objects import CORE_GROUP
from capsmith.judge.running.session import Session

_MORE = REPLICAS + 1
_MOST = REPLICAS + 2
_ELSEWHERE = f"{CORE_GROUP}/replicas-managed-by"
_DELETE_FIRST = f"{CORE_GROUP}/delete-machine"
_PATH = "spec.providerIDList"


def _scale_up(session: Session, kind: str) -> None:
    before = set(provider_ids(ensure_main_pool(session, kind)))
    name = main_name(kind)
    scale(session, kind, _MORE)
    pool = session.wait(
        kind, name, partial(has_ids, _MORE), f"it does not have {_MORE} machines", _PATH
    )
    if not before <= set(provider_ids(pool)):
        message = "the provider IDs of machines changed while others were added"
        raise Violated(message, session.subject(kind, name), _PATH)


def _order(session: Session, kind: str) -> None:
    ensure_main_pool(session, kind)
    # A provider that lists machines in random order may show this only after several resyncs.
    session.run_once("a quiet time of pools", session.settle)
    name = main_name(kind)
    states = session.history.states(kind, name)
    for before, after in itertools.pairwise(states):
        kept = [each for each in provider_ids(before) if each in provider_ids(after)]
        now = [each for each in provider_ids(after) if each in kept]
        if kept != now:
            message = f"the order of the same provider IDs changed: {kept} became {now}"
            raise Violated(message, session.subject(kind, name), "spec.providerIDList")


def _restart(session: Session, kind: str) -> None:
    if session.manager is None:
        raise Skipped("this run did not start the manager")
    before = set(provider_ids(ensure_main_pool(session, kind)))
    name = main_name(kind)
    scale(session, kind, _MOST)
    # During growth: a restart may create again what was created but not yet written.
    session.manager.kill()
    session.manager.start()
    session.wait(kind, name, partial(has_ids, _MOST), f"it does not have {_MOST} machines", _PATH)
    session.settle()
    states = session.history.states(kind, name)
    # IDs of all states, because machines that were created twice may be removed before the end.
    known = {each for state in states for each in provider_ids(state)}
    if not before <= set(provider_ids(states[-1])) or len(known) > _MOST:
        message = f"after a restart it had duplicate machines: {', '.join(sorted(known))}"
        raise Violated(message, session.subject(kind, name), _PATH)


def _scale_down(session: Session, kind: str) -> None:
    """Mark a machine for deletion and request one replica less.

    The pool has at least three machines; the marked machine is neither the first nor the last.
    """
    size = max(len(provider_ids(ensure_main_pool(session, kind))), _MORE)
    name, machine_kind = main_name(kind), session.objects.machine_kind
    scale(session, kind, size)
    session.wait(kind, name, partial(has_ids, size), f"it does not have {size} machines", _PATH)
    machines = sorted(
        each["metadata"]["name"] for each in find_machine_objects(session, kind, name)
    )
    for each in machines:
        session.wait("Machine", each, bool, "core creates no Machine for it")
    # Neither the first nor the last, because a provider that just removes one of these would pass
    # by luck.
    marked = machines[len(machines) // 2]
    mark = {"metadata": {"annotations": {_DELETE_FIRST: ""}}}
    session.client.patch(session.latest("Machine", marked), mark)
    session.wait("Machine", marked, _is_marked, "the mark was removed")
    session.settle()
    scale(session, kind, len(machines) - 1)
    left = partial(has_machines, session, kind, len(machines) - 1)
    if not session.history.wait(left, session.timing.patience):
        raise Violated(f"it keeps {len(machines)} machines", session.subject(kind, name))
    gone = [each for each in machines if session.history.latest(machine_kind, each) is None]
    if gone != [marked]:
        message = f"{', '.join(gone)} was deleted although {marked} has the mark {_DELETE_FIRST}"
        raise Violated(message, session.subject(machine_kind, marked), "metadata.annotations")
    session.wait_deleted("Machine", marked, "its machine object was deleted, but it still exists")


def _is_marked(machine: JSON) -> bool:
    return _DELETE_FIRST in (machine["metadata"].get("annotations") or {})


def _elsewhere(session: Session, kind: str) -> None:
    """Request an additional replica while another system sets the number of replicas."""
    ids = provider_ids(ensure_main_pool(session, kind))
    name = main_name(kind)
    pool = session.latest("MachinePool", name)
    size = pool["spec"]["replicas"]
    # One write: a manager that knows the additional replica knows the annotation too.
    _set_size(session, kind, size + 1, "conformance")
    session.wait("MachinePool", name, _is_elsewhere, "the annotation was removed")
    stayed = session.stays(lambda: set(provider_ids(session.latest(kind, name))) == set(ids))
    # Undone before the verdict, so that the next check finds the pool unchanged.
    _set_size(session, kind, size, None)
    session.wait(
        kind, name, partial(has_ids, size), f"it does not have {size} machines again", _PATH
    )
    if not stayed:
        message = f"the manager changed its size although the MachinePool has {_ELSEWHERE}"
        raise Violated(message, session.subject(kind, name), _PATH)


def _set_size(session: Session, kind: str, size: int, elsewhere: str | None) -> None:
    pool = session.latest("MachinePool", main_name(kind))
    metadata = {"annotations": {_ELSEWHERE: elsewhere}}
    session.client.patch(pool, {"metadata": metadata, "spec": {"replicas": size}})


def _is_elsewhere(pool: JSON) -> bool:
    return _ELSEWHERE in (pool["metadata"].get("annotations") or {})


def _deletion(session: Session) -> None:
    what = "its MachinePool was deleted, but it still exists"
    for kind in require_pool_kinds(session):
        ensure_main_pool(session, kind)
        # Core may not know the kind of the missing configuration, and then never deletes the object
        # that refers to it.
        session.provide_data(session.latest("MachinePool", waiting_name(kind)))
    for kind in require_pool_kinds(session):
        for name in (main_name(kind), waiting_name(kind), paused_name(kind)):
            session.client.delete(session.latest("MachinePool", name))
    for kind in require_pool_kinds(session):
        owned = [
            each["metadata"]["name"]
            for each in find_machine_objects(session, kind, main_name(kind))
        ]
        for name in (main_name(kind), waiting_name(kind), paused_name(kind)):
            session.wait_deleted(kind, name, what)
        for name in owned:
            session.wait_deleted(
                session.objects.machine_kind, name, "its pool is gone, but it still exists"
            )


POOL_CHANGES = (
    ConformanceCheck(
        "pool-scale-up",
        "A machine pool grows with its MachinePool, and keeps the machines that it has.",
        ("MP-03", "MP-04"),
        check_each_pool(_scale_up),
    ),
    ConformanceCheck(
        "pool-order",
        "The provider IDs of a machine pool keep their order.",
        ("MP-03",),
        check_each_pool(_order),
    ),
    ConformanceCheck(
        "pool-restart",
        "A manager that crashes while a pool grows creates no machine twice.",
        ("SM-09", "MP-03"),
        check_each_pool(_restart),
    ),
    ConformanceCheck(
        "pool-replicas-managed",
        "The manager does not scale a machine pool whose size another system sets.",
        ("MP-17",),
        check_each_pool(_elsewhere),
    ),
    ConformanceCheck(
        "pool-scale-down",
        "A pool that shrinks deletes Machines, those that are marked first.",
        ("MP-10",),
        check_pools_with_machines(_scale_down),
    ),
    ConformanceCheck(
        "pool-deletion",
        "The deletion of a MachinePool deletes its machines and the finalizer of its pool.",
        ("SM-08", "MP-15"),
        _deletion,
    ),
)
