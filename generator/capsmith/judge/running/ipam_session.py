"""Run checks against an IPAM provider, with pools, claims and allocated addresses.

The user provides pools; for kinds with ranges and a prefix, the run can create them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from capsmith.clusters.processes.kube import JSON, StaleError
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.errors import UnreadableInput
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.contract import PAUSED, V1BETA1
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.model import Violated
from capsmith.judge.running.objects import CLUSTER_NAME
from capsmith.judge.running.session import delete_namespace

IPAM_GROUP = "ipam.cluster.x-k8s.io"
POOL_ROLES = ("IPPool", "GlobalIPPool")
_NAME = "conformance"
_RANGES = ("198.51.100.10-198.51.100.13", "203.0.113.10-203.0.113.13")
"""Address ranges from the networks for documentation, one for each pool kind; small enough to
exhaust."""
_PREFIX = 24


@dataclass(frozen=True)
class IpamObjects:
    """The IPAM provider's pools that a conformance run uses, one per kind."""

    documents: tuple[JSON, ...]

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Return each pool's API version and kind."""
        return [(str(each["apiVersion"]), str(each["kind"])) for each in self.documents]

    @property
    def names(self) -> list[str]:
        """Return the name of each pool's kind."""
        return [kind for _, kind in self.kinds]

    def group(self, kind: str) -> str:
        """Return a pool kind's API group. The kind must be one of :attr:`names`."""
        version = next(version for version, each in self.kinds if each == kind)
        return version.partition("/")[0]

    def pool(self, kind: str, namespace: str) -> JSON:
        """Return the given kind's pool, named after the run's namespace."""
        document = next(each for each in self.documents if each["kind"] == kind)
        metadata = {**(document.get("metadata") or {}), "name": namespace, "namespace": namespace}
        return {**document, "metadata": metadata}


def select_ipam_objects(
    documents: Iterable[JSON], crds: Sequence[JSON], roles: Mapping[str, str]
) -> IpamObjects:
    """Select a pool of each kind from the documents, or create one if its schema is supported.

    Raises UnreadableInput (``conformance-objects``) if no pool is found or created.
    """
    found = {each["kind"]: each for each in documents if roles.get(each["kind"]) in POOL_ROLES}
    for number, crd in enumerate(crds):
        kind = crd["spec"]["names"]["kind"]
        if roles.get(kind) in POOL_ROLES and kind not in found:
            made = _made(crd, _RANGES[number % len(_RANGES)])
            if made is not None:
                found[kind] = made
    if not found:
        raise UnreadableInput(
            "conformance-objects",
            "no object is a pool of addresses",
            hint="Specify a pool with few addresses with --objects.",
        )
    return IpamObjects(tuple(found.values()))


def _made(crd: JSON, addresses: str) -> JSON | None:
    """Return a pool if the kind's spec requires only addresses and a prefix, else None."""
    version = next(each for each in crd["spec"]["versions"] if each["storage"])
    spec: dict[str, Any] = _properties(version["schema"]["openAPIV3Schema"]).get("spec") or {}
    fields = _properties(spec)
    listed = fields.get("addresses") or {}
    # Anything else would require guessing what fields mean, so the user has to provide such pools.
    is_known = listed.get("type") == "array" and (listed.get("items") or {}).get("type") == "string"
    if not is_known or set(spec.get("required") or ()) - {"addresses", "prefix", "gateway"}:
        return None
    values: JSON = {"addresses": [addresses], "prefix": _PREFIX}
    values["gateway"] = f"{addresses.rpartition('.')[0].partition('-')[0].rpartition('.')[0]}.1"
    return {
        "apiVersion": f"{crd['spec']['group']}/{version['name']}",
        "kind": crd["spec"]["names"]["kind"],
        "metadata": {"name": _NAME},
        "spec": {key: value for key, value in values.items() if key in fields},
    }


def _properties(schema: JSON) -> dict[str, Any]:
    return dict(schema.get("properties") or {})


CLAIM = "IPAddressClaim"
ADDRESS = "IPAddress"
FOREIGN = "Foreign"
"""Prefix that turns a pool kind into the name of a kind that does not exist."""


@dataclass
class IpamSession(BaseSession):
    """The state shared by all checks on an IPAM provider."""

    pools: IpamObjects

    @property
    def version(self) -> str:
        """Return the API version in which core serves claims and addresses."""
        return f"{IPAM_GROUP}/{self.contract}"

    def kinds(self) -> list[WatchedKind]:
        """Return the kinds whose objects the run records in its history."""
        core = [WatchedKind(self.version, kind) for kind in (CLAIM, ADDRESS)]
        return [*(WatchedKind(*each) for each in self.pools.kinds), *core]

    def create_pool(self, kind: str) -> str:
        """Create the given kind's pool, and return its name."""
        pool = self.pools.pool(kind, self.namespace)
        self.apply(pool)
        return str(pool["metadata"]["name"])

    def create_claim(
        self,
        name: str,
        kind: str,
        *,
        cluster: str = "",
        annotations: Mapping[str, str] | None = None,
    ) -> None:
        """Create a claim on the given kind's pool. An empty ``cluster`` means no cluster."""
        group = self.pools.group(kind.removeprefix(FOREIGN))
        reference = {"apiGroup": group, "kind": kind, "name": self.namespace}
        metadata: JSON = {"name": name, "namespace": self.namespace}
        spec: JSON = {"poolRef": reference}
        if annotations:
            metadata["annotations"] = dict(annotations)
        if cluster:
            # The label is an older way that some providers still read.
            metadata["labels"] = {CLUSTER_NAME: cluster}
            if self.contract != V1BETA1:
                spec["clusterName"] = cluster
        claim = {"apiVersion": self.version, "kind": CLAIM, "metadata": metadata, "spec": spec}
        self.client.create(claim)

    def wait_allocated(self, claim: str) -> JSON:
        """Wait until a claim refers to an existing IPAddress, and return the IPAddress.

        Raises Violated on a timeout.
        """
        obj = self.wait(CLAIM, claim, has_address, "it gets no address", "status.addressRef")
        name = _reference(obj)
        return self.wait(ADDRESS, name, bool, f"the claim {claim} names it, but it does not exist")

    def release(self, claim: str) -> None:
        """Delete a claim and wait until it no longer exists.

        Raises Violated if it still exists after the timeout.
        """
        self.client.delete(self.latest(CLAIM, claim))
        self.wait_deleted(CLAIM, claim, "it was deleted, but still exists")

    def address_of(self, claim: str) -> JSON | None:
        """Return a claim's IPAddress, or None if it has none."""
        for name in self.history.names(ADDRESS):
            found = self.history.latest(ADDRESS, name)
            if found and found["spec"].get("claimRef", {}).get("name") == claim:
                return found
        return None

    def refuse_address(self, claim: str, reason: str) -> None:
        """Raise Violated if a claim ever got an address.

        ``reason`` completes messages such as "the manager created an IPAddress although".
        """
        for state in self.history.states(CLAIM, claim):
            if has_address(state):
                message = f"the manager wrote status.addressRef although {reason}"
                raise Violated(message, self.subject(CLAIM, claim), "status.addressRef")
        if self.address_of(claim) is not None:
            message = f"the manager created an IPAddress although {reason}"
            raise Violated(message, self.subject(CLAIM, claim))

    def clean_up(self) -> None:
        """Delete the claims, then the pools, then the namespace.

        Finalizers that block deletion are removed.
        """
        # Nothing would delete a paused claim.
        for kind in (CLAIM, "Cluster"):
            for each in self._list(kind):
                self._resume(each)
        # Claims before pools, because a pool waits until its addresses are released.
        for each in self._list(CLAIM):
            self.client.delete(each)
        self._wait_deleted(CLAIM, ADDRESS)
        for _, kind in self.pools.kinds:
            for each in self._own_pools(kind):
                self._resume(each)
                self.client.delete(each)
        self._wait_deleted()
        # The Clusters' infrastructure never existed, so core cannot delete them.
        for kind in (CLAIM, ADDRESS, *(kind for _, kind in self.pools.kinds), "Cluster"):
            for each in self._list(kind):
                self.client.delete(each)
                with suppress(StaleError):
                    self.client.patch(each, {"metadata": {"finalizers": None}})
        delete_namespace(self.client, self.namespace)

    def _resume(self, obj: JSON) -> None:
        body: JSON = {"metadata": {"annotations": {PAUSED: None}}}
        if obj["kind"] == "Cluster":
            body = {"spec": {"paused": False}}
        with suppress(StaleError):
            self.client.patch(obj, body)

    def _wait_deleted(self, *kinds: str) -> None:
        """Wait until no object of the given kinds is left, or no pool if no kinds are given."""

        def deleted() -> bool:
            found = [each for kind in kinds for each in self._list(kind)]
            if not kinds:
                found = [each for _, kind in self.pools.kinds for each in self._own_pools(kind)]
            if found:
                raise NotYet(f"still present: {[each['metadata']['name'] for each in found]}")
            return True

        with suppress(TimeoutError):
            eventually(deleted, timeout=self.timing.cleanup)

    def _list(self, kind: str) -> list[JSON]:
        if kind in (CLAIM, ADDRESS):
            return self.client.list(self.version, kind, self.namespace)
        if kind == "Cluster":
            return self.client.list(self.core.api_version, kind, self.namespace)
        return self._own_pools(kind)

    def _own_pools(self, kind: str) -> list[JSON]:
        """Return the pools of a kind that this run created, also outside its namespace."""
        version = next(version for version, each in self.pools.kinds if each == kind)
        names = self.pools.pool(kind, self.namespace)["metadata"]
        found = self.client.find(version, kind, names["name"], self.namespace)
        return [] if found is None else [{"apiVersion": version, "kind": kind, **found}]


def has_address(claim: JSON) -> bool:
    """Return whether a claim refers to an IPAddress."""
    return bool(_reference(claim))


def _reference(claim: JSON) -> str:
    return str(((claim.get("status") or {}).get("addressRef") or {}).get("name") or "")
