"""Check IP address claims: what they wait for, and how addresses are allocated and released.

Covers unique allocation, release, exhausted pools, and manager restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address

from capsmith.clusters.processes.kube import JSON
from capsmith.judge.running.contract import PAUSED, find_condition
from capsmith.judge.running.ipam_session import ADDRESS, CLAIM, FOREIGN, IpamSession, has_address
from capsmith.judge.running.model import ConformanceCheck, Skipped, Violated
from capsmith.judge.running.objects import CORE_GROUP

_CLUSTER = "paused"


def check_each_pool(check: Callable[[IpamSession, str], None]) -> Callable[[IpamSession], None]:
    """Return a check that runs ``check`` for each pool kind and stops at the first failure."""

    def run(session: IpamSession) -> None:
        for kind in session.pools.names:
            check(session, kind)

    return run


def claim_name(text: str, kind: str) -> str:
    """Return a name, based on ``text``, for a claim on the given kind's pool."""
    return f"{text}-{kind.lower()}"


def ensure_claims(session: IpamSession) -> None:
    """Create claims that must not get an address, and then a regular claim on each pool.

    Waits until each regular claim has its address, and then for :attr:`Timing.quiet` seconds. Later
    calls do nothing.
    """

    def create() -> None:
        for kind in session.pools.names:
            session.create_pool(kind)
        session.client.create(_paused_cluster(session))
        for kind in session.pools.names:
            session.create_claim(claim_name("foreign", kind), f"{FOREIGN}{kind}")
            session.create_claim(claim_name("annotated", kind), kind, annotations={PAUSED: "true"})
            session.create_claim(claim_name("paused", kind), kind, cluster=_CLUSTER)
            session.create_claim(claim_name("missing", kind), kind, cluster="nowhere")
        for kind in session.pools.names:
            session.create_claim(claim_name("main", kind), kind)
            session.wait_allocated(claim_name("main", kind))
        session.settle()

    session.run_once("the allocation of a first address", create)


def _paused_cluster(session: IpamSession) -> JSON:
    """Return a paused Cluster.

    Core requires a reference to infrastructure, but the referenced object need not exist.
    """
    infrastructure = {
        "apiVersion": f"infrastructure.{CORE_GROUP}/{session.core.version}",
        "kind": "ConformanceCluster",
        "metadata": {"name": _CLUSTER},
    }
    cluster = session.core.cluster(_CLUSTER, infrastructure)
    cluster["spec"]["paused"] = True
    return cluster


def ensure_main_claim(session: IpamSession, kind: str) -> tuple[JSON, JSON]:
    """Return the regular claim on the given kind's pool, and the claim's IPAddress."""
    ensure_claims(session)
    name = claim_name("main", kind)
    return session.latest(CLAIM, name), session.wait_allocated(name)


def _allocated(session: IpamSession, kind: str) -> None:
    claim, _ = ensure_main_claim(session, kind)
    if not claim["metadata"].get("finalizers"):
        where = session.subject(CLAIM, claim["metadata"]["name"])
        raise Violated("it has an address, but no finalizer", where, "metadata.finalizers")


def _content(session: IpamSession, kind: str) -> None:
    claim, address = ensure_main_claim(session, kind)
    spec, name = address["spec"], address["metadata"]["name"]
    pool = session.pools.pool(kind, session.namespace)["spec"]
    where = session.subject(ADDRESS, name)
    try:
        ip_address(str(spec.get("address")))
    except ValueError as error:
        raise Violated(str(error), where, "spec.address") from error
    expected = {
        **_promised(pool, spec),
        "claimRef": {"name": claim["metadata"]["name"]},
    }
    for key, value in expected.items():
        if spec.get(key) != value or (key == "prefix" and value is None):
            raise Violated(f"{key} is {spec.get(key)}, not {value}", where, f"spec.{key}")
    for key, value in claim["spec"]["poolRef"].items():
        if spec["poolRef"].get(key) != value:
            message = f"{key} is {spec['poolRef'].get(key)}, not {value}"
            raise Violated(message, where, "spec.poolRef")


def _promised(pool: JSON, spec: JSON) -> JSON:
    """Return prefix and gateway of an IPAddress, as the pool's spec has them.

    The contract does not define a pool's fields. In pools of other systems, the prefix may be a
    network or an id, so it counts only beside ``addresses``, and a gateway only as an IP address.
    """
    prefix, gateway = spec.get("prefix"), spec.get("gateway")
    if "addresses" in pool and type(pool.get("prefix")) is int:
        prefix = pool["prefix"]
    with suppress(ValueError):
        gateway = str(ip_address(str(pool.get("gateway"))))
    return {"prefix": prefix, "gateway": gateway}


def _owners(session: IpamSession, kind: str) -> None:
    claim, address = ensure_main_claim(session, kind)
    where = session.subject(ADDRESS, address["metadata"]["name"])
    owners = {each["kind"]: each for each in address["metadata"].get("ownerReferences") or []}
    path = "metadata.ownerReferences"
    for owner, controls in ((CLAIM, True), (kind, False)):
        found = owners.get(owner)
        if found is None:
            raise Violated(f"the {owner} does not own it", where, path)
        if bool(found.get("controller")) is not controls:
            verb = "does not control" if controls else "controls"
            raise Violated(f"the {owner} {verb} it", where, path)
        if not found.get("blockOwnerDeletion"):
            raise Violated(f"the reference to the {owner} does not block deletion", where, path)
    if owners[CLAIM]["uid"] != claim["metadata"]["uid"]:
        raise Violated("the reference to the claim has another uid", where, path)


def _foreign(session: IpamSession, kind: str) -> None:
    ensure_claims(session)
    name = claim_name("foreign", kind)
    session.refuse_address(name, "its pool is of another kind")
    if session.latest(CLAIM, name)["metadata"].get("finalizers"):
        message = "the manager added a finalizer although its pool is of another kind"
        raise Violated(message, session.subject(CLAIM, name), "metadata.finalizers")


def _missing(session: IpamSession, kind: str) -> None:
    ensure_claims(session)
    session.refuse_address(claim_name("missing", kind), "its Cluster does not exist")


def _paused(session: IpamSession) -> None:
    ensure_claims(session)
    for kind in session.pools.names:
        name = claim_name("annotated", kind)
        session.refuse_address(name, f"it has the annotation {PAUSED}")
        session.refuse_address(claim_name("paused", kind), "its Cluster is paused")
        claim = session.latest(CLAIM, name)
        session.client.patch(claim, {"metadata": {"annotations": {PAUSED: None}}})
    session.client.patch(_paused_cluster(session), {"spec": {"paused": False}})
    for kind in session.pools.names:
        for text in ("annotated", "paused"):
            session.wait_allocated(claim_name(text, kind))


def _ready(session: IpamSession, kind: str) -> None:
    ensure_main_claim(session, kind)
    what, path = "the condition Ready is not True", "status.conditions[Ready]"
    session.wait(kind, session.namespace, partial(is_ready, "True"), what, path)
    session.wait(CLAIM, claim_name("main", kind), partial(is_ready, "True"), what, path)


def is_ready(status: str, obj: JSON) -> bool:
    """Return whether an object's Ready condition has the given status."""
    return (find_condition(obj, "Ready") or {}).get("status") == status


CLAIMS: tuple[ConformanceCheck[IpamSession], ...] = (
    ConformanceCheck(
        "claim-allocated",
        "A claim gets a finalizer and an IPAddress, which its status names.",
        ("IP-08", "IP-09"),
        check_each_pool(_allocated),
    ),
    ConformanceCheck(
        "address-content",
        "An IPAddress has address, prefix and gateway of its pool, and names claim and pool.",
        ("IP-06", "IP-09"),
        check_each_pool(_content),
    ),
    ConformanceCheck(
        "address-owners",
        "Claim and pool own an IPAddress and block each other's deletion; the claim controls it.",
        ("IP-09",),
        check_each_pool(_owners),
    ),
    ConformanceCheck(
        "claim-foreign-pool",
        "A claim on a pool of another kind is left alone.",
        ("IP-08",),
        check_each_pool(_foreign),
    ),
    ConformanceCheck(
        "claim-missing-cluster",
        "A claim that names a missing Cluster is left alone.",
        ("IP-08",),
        check_each_pool(_missing),
    ),
    ConformanceCheck(
        "pool-of-addresses-ready",
        "A pool and a claim with an address have the condition Ready.",
        ("IP-03",),
        check_each_pool(_ready),
    ),
    ConformanceCheck(
        "claim-paused",
        "Paused claims and those of paused Clusters are left alone, and continue after the pause.",
        ("IP-08", "SM-01"),
        _paused,
    ),
)


_MOST = 32
"""Maximum number of claims that are created to exhaust a pool."""


def _unique(session: IpamSession, kind: str) -> None:
    ensure_main_claim(session, kind)
    session.create_claim(claim_name("second", kind), kind)
    session.wait_allocated(claim_name("second", kind))
    taken: dict[tuple[str, str], str] = {}
    for obj in session.list_existing(ADDRESS):
        name, spec = obj["metadata"]["name"], obj["spec"]
        key = (spec["poolRef"]["kind"], spec["address"])
        if taken.setdefault(key, name) != name:
            message = f"{spec['address']} is also the address of {taken[key]}"
            raise Violated(message, session.subject(ADDRESS, name), "spec.address")
    session.release(claim_name("second", kind))


def _exhausted(session: IpamSession, kind: str) -> None:
    """Create claims until no address is left, then release an address."""
    ensure_main_claim(session, kind)
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
    # The main claim has the only address, so it is the one to release.
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
    ensure_main_claim(session, kind)
    name = claim_name("released", kind)
    session.create_claim(name, kind)
    address = session.wait_allocated(name)["metadata"]["name"]
    session.release(name)
    session.wait_deleted(ADDRESS, address, "its claim is gone, but it still exists")


def _restart(session: IpamSession) -> None:
    if session.manager is None:
        raise Skipped("this run did not start the manager")
    before = {kind: ensure_main_claim(session, kind)[1] for kind in session.pools.names}
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
    address = ensure_main_claim(session, kind)[1]["metadata"]["name"]
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
    for claim in session.list_existing(CLAIM):
        if claim["spec"]["poolRef"]["kind"] == kind:
            session.client.delete(claim)
    what = "all its addresses are released, but it still exists"
    session.wait_deleted(kind, name, what)


def _is_decided(claim: JSON) -> bool:
    return has_address(claim) or is_ready("False", claim)


ADDRESSES_OVER_TIME: tuple[ConformanceCheck[IpamSession], ...] = (
    ConformanceCheck(
        "address-unique",
        "Two claims on a pool get two addresses.",
        ("IP-08", "IP-09"),
        check_each_pool(_unique),
    ),
    ConformanceCheck(
        "claim-released",
        "A claim that is deleted ends with its IPAddress.",
        ("IP-10",),
        check_each_pool(_released),
    ),
    ConformanceCheck(
        "pool-exhausted",
        "A claim on an exhausted pool says so in Ready, and gets the next address that is free.",
        ("IP-08", "IP-10"),
        check_each_pool(_exhausted),
    ),
    ConformanceCheck(
        "ipam-restart",
        "A manager that crashes keeps all addresses, and allocates none twice.",
        ("SM-09", "IP-09"),
        _restart,
    ),
    ConformanceCheck(
        "pool-in-use",
        "A pool that is deleted stays until its last address is released.",
        ("IP-09", "SM-08"),
        check_each_pool(_in_use),
    ),
)
"""Checks of address allocation over time. The last of them deletes the pools."""
