"""A run against an IPAM provider: pools, claims and the addresses that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from capsmith.clusters.processes.kube import JSON, StaleError
from capsmith.clusters.processes.wait import NotYet, eventually
from capsmith.judge.running.base_session import BaseSession
from capsmith.judge.running.contract import PAUSED, V1BETA1
from capsmith.judge.running.history import WatchedKind
from capsmith.judge.running.ipam_objects import IPAM_GROUP, IpamObjects
from capsmith.judge.running.model import Violated
from capsmith.judge.running.objects import CLUSTER_NAME
from capsmith.judge.running.session import delete_namespace

CLAIM = "IPAddressClaim"
ADDRESS = "IPAddress"
FOREIGN = "Foreign"
"""What the kind of a pool begins with that no provider has."""


@dataclass
class IpamSession(BaseSession):
    """What the checks of IPAM providers share."""

    pools: IpamObjects

    @property
    def version(self) -> str:
        """The API version of claims and addresses; that of core."""
        return f"{IPAM_GROUP}/{self.contract}"

    def kinds(self) -> list[WatchedKind]:
        """Return the kinds whose objects are recorded."""
        core = [WatchedKind(self.version, kind) for kind in (CLAIM, ADDRESS)]
        return [*(WatchedKind(*each) for each in self.pools.kinds), *core]

    def create_pool(self, kind: str) -> str:
        """Create the pool of a kind, and return its name."""
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
        """Create a claim on the pool of a kind, for a cluster if one is named."""
        group = self.pools.group(kind.removeprefix(FOREIGN))
        reference = {"apiGroup": group, "kind": kind, "name": self.namespace}
        metadata: JSON = {"name": name, "namespace": self.namespace}
        spec: JSON = {"poolRef": reference}
        if annotations:
            metadata["annotations"] = dict(annotations)
        if cluster:
            # The label is the older way, which some providers still read.
            metadata["labels"] = {CLUSTER_NAME: cluster}
            if self.contract != V1BETA1:
                spec["clusterName"] = cluster
        claim = {"apiVersion": self.version, "kind": CLAIM, "metadata": metadata, "spec": spec}
        self.client.create(claim)

    def wait_allocated(self, claim: str) -> JSON:
        """Wait until a claim names an address that exists, and return the IPAddress."""
        obj = self.wait(CLAIM, claim, has_address, "it gets no address", "status.addressRef")
        name = _reference(obj)
        return self.wait(ADDRESS, name, bool, f"the claim {claim} names it, but it does not exist")

    def release(self, claim: str) -> None:
        """Delete a claim, and wait until it is gone."""
        self.client.delete(self.latest(CLAIM, claim))
        self.wait_deleted(CLAIM, claim, "it was deleted, but still exists")

    def address_of(self, claim: str) -> JSON | None:
        """Return the IPAddress of a claim, if there is one."""
        for name in self.history.names(ADDRESS):
            found = self.history.latest(ADDRESS, name)
            if found and found["spec"].get("claimRef", {}).get("name") == claim:
                return found
        return None

    def refuse_address(self, claim: str, reason: str) -> None:
        """Raise Violated if a claim ever got an address; ``reason`` says why it must not."""
        for state in self.history.states(CLAIM, claim):
            if has_address(state):
                message = f"the manager wrote status.addressRef although {reason}"
                raise Violated(message, self.subject(CLAIM, claim), "status.addressRef")
        if self.address_of(claim) is not None:
            message = f"the manager created an IPAddress although {reason}"
            raise Violated(message, self.subject(CLAIM, claim))

    def clean_up(self) -> None:
        """Delete claims, then pools, then the namespace; finalizers that stay are removed."""
        for kind in (CLAIM, "Cluster"):
            for each in self._list(kind):
                self._resume(each)
        for each in self._list(CLAIM):
            self.client.delete(each)
        self._wait_deleted(CLAIM, ADDRESS)
        for _, kind in self.pools.kinds:
            for each in self._own_pools(kind):
                self._resume(each)
                self.client.delete(each)
        self._wait_deleted()
        # The infrastructure of the Clusters never existed, so core cannot delete them.
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
        """Wait until no object of some kinds, or no pool, is left."""

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
        """Return the pools of a kind that this run created, also outside of its namespace."""
        version = next(version for version, each in self.pools.kinds if each == kind)
        names = self.pools.pool(kind, self.namespace)["metadata"]
        found = self.client.find(version, kind, names["name"], self.namespace)
        return [] if found is None else [{"apiVersion": version, "kind": kind, **found}]


def has_address(claim: JSON) -> bool:
    """Return whether a claim names its IPAddress."""
    return bool(_reference(claim))


def _reference(claim: JSON) -> str:
    return str(((claim.get("status") or {}).get("addressRef") or {}).get("name") or "")
