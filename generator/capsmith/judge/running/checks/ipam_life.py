"""Addresses over time: allocated once, released, exhausted, and kept in a restart."""

from __future__ import annotations

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.checks.ipam import claim_name, each_pool, is_ready, main_claim
from capsmith.judge.running.ipam_session import ADDRESS, CLAIM, IpamSession, has_address
from capsmith.judge.running.model import Check, Skipped, Violated

_MOST = 32
"""Claims with which a pool is tried to be exhausted."""


def _unique(session: IpamSession, kind: str) -> None:
    main_claim(session, kind)
    session.create_claim(claim_name("second", kind), kind)
    session.wait_allocated(claim_name("second", kind))
    taken: dict[tuple[str, str], str] = {}
    for name in session.history.names(ADDRESS):
        spec = session.latest(ADDRESS, name)["spec"]
        key = (spec["poolRef"]["kind"], spec["address"])
        if taken.setdefault(key, name) != name:
            message = f"{spec['address']} is also the address of {taken[key]}"
            raise Violated(message, session.subject(ADDRESS, name), "spec.address")
    session.release(claim_name("second", kind))


def _exhausted(session: IpamSession, kind: str) -> None:
    """Claim until there is no address, then release one."""
    main_claim(session, kind)
    granted, refused = [], ""
    for number in range(_MOST):
        name = f"{claim_name('more', kind)}-{number}"
        session.create_claim(name, kind)
        what = "it gets neither an address nor a condition with the reason"
        claim = session.wait(CLAIM, name, _is_decided, what, "status.conditions[Ready]")
        if not has_address(claim):
            refused = name
            break
        granted.append(name)
    if not refused:
        _release_all(session, granted)
        raise Skipped(f"the pool has more than {_MOST} addresses; specify a smaller one")
    if not granted:
        granted = [claim_name("main", kind)]
    session.release(granted.pop())
    session.wait_allocated(refused)
    _release_all(session, [*granted, refused])


def _release_all(session: IpamSession, claims: list[str]) -> None:
    for name in claims:
        session.client.delete(session.latest(CLAIM, name))
    for name in claims:
        session.wait_deleted(CLAIM, name, "it was deleted, but still exists")


def _released(session: IpamSession, kind: str) -> None:
    main_claim(session, kind)
    name = claim_name("released", kind)
    session.create_claim(name, kind)
    address = session.wait_allocated(name)["metadata"]["name"]
    session.release(name)
    session.wait_deleted(ADDRESS, address, "its claim is gone, but it still exists")


def _restart(session: IpamSession) -> None:
    if session.manager is None:
        raise Skipped("this run did not start the manager")
    before = {kind: main_claim(session, kind)[1] for kind in session.pools.names}
    for kind in session.pools.names:
        session.create_claim(claim_name("restart", kind), kind)
    session.manager.kill()
    session.manager.start()
    for kind, address in before.items():
        new = session.wait_allocated(claim_name("restart", kind))["spec"]
        kept = session.latest(ADDRESS, address["metadata"]["name"])["spec"]
        where = session.subject(ADDRESS, address["metadata"]["name"])
        if kept != address["spec"]:
            raise Violated("it changed in a restart of the manager", where, "spec")
        if new["address"] == kept["address"]:
            message = f"after a restart {kept['address']} was allocated twice"
            raise Violated(message, where, "spec.address")
        session.release(claim_name("restart", kind))


def _in_use(session: IpamSession, kind: str) -> None:
    address = main_claim(session, kind)[1]["metadata"]["name"]
    name = session.namespace
    pool = session.wait(kind, name, bool, "it does not exist")
    session.client.delete(pool)

    def kept() -> bool:
        found = session.history.latest(ADDRESS, address)
        is_there = session.history.latest(kind, name) is not None
        return is_there and found is not None and "deletionTimestamp" not in found["metadata"]

    if not session.stays(kept):
        message = "it was deleted while its addresses were in use"
        raise Violated(message, session.subject(kind, name), "metadata.finalizers")
    for each in session.history.names(CLAIM):
        claim = session.history.latest(CLAIM, each)
        if claim is not None and claim["spec"]["poolRef"]["kind"] == kind:
            session.client.delete(claim)
    what = "all its addresses are released, but it still exists"
    session.wait_deleted(kind, name, what)


def _is_decided(claim: JSON) -> bool:
    return has_address(claim) or is_ready("False", claim)


ADDRESS_LIFE: tuple[Check[IpamSession], ...] = (
    Check(
        "address-unique",
        "Two claims on a pool get two addresses.",
        ("IP-08", "IP-09"),
        each_pool(_unique),
    ),
    Check(
        "claim-released",
        "A claim that is deleted ends with its IPAddress.",
        ("IP-10",),
        each_pool(_released),
    ),
    Check(
        "pool-exhausted",
        "A claim on an exhausted pool says so in Ready, and gets the next address that is free.",
        ("IP-08", "IP-10"),
        each_pool(_exhausted),
    ),
    Check(
        "ipam-restart",
        "A manager that crashes keeps all addresses, and allocates none twice.",
        ("SM-09", "IP-09"),
        _restart,
    ),
    Check(
        "pool-in-use",
        "A pool that is deleted stays until its last address is released.",
        ("IP-09", "SM-08"),
        each_pool(_in_use),
    ),
)
"""The last one leaves no pools."""
