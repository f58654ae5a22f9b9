"""Addresses that machines claim from the pools in ``spec.addressesFromPools`` (IP-12).

Each machine has one claim for each pool, named after the machine and controlled by it.  Any IPAM
provider may serve the claim.  The garbage collector deletes the claim after the machine, if the
owner reference has an API version that is still served.
"""

from __future__ import annotations

from contextlib import suppress

from capsmith_runtime.contract import conditions, constants, metadata
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.ipam import DIALECTS, IPAddressClaim
from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.errors import AlreadyExistsError, NotFoundError
from capsmith_runtime.infrastructure.api import ClaimedAddress
from capsmith_runtime.infrastructure.context import InfrastructureContext
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.informer import Handler, Informer
from capsmith_runtime.kube.patch import write
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.groups import ControllerGroup, Queues
from capsmith_runtime.reconcile.kinds import address_type, claim_type
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.watches import enqueue_owners

REASON_WAITING = "WaitingForIPAddress"
_LONGEST_STEM = 248
"""Maximum length of the claim name before its suffix; names have at most 253 characters."""


class MachineAddresses(ControllerGroup):
    """Manages all machines' claims, and looks up the addresses allocated to them."""

    def __init__(self, context: InfrastructureContext) -> None:
        core = context.caches.core
        self._dialect = DIALECTS[core.reader.version]
        self._client = core.client
        self._claims = core.informer(claim_type(self._dialect.version), core.scope.select_own())
        self._addresses = core.informer(address_type(self._dialect.version), core.scope.select())
        self._enqueue_machine: Handler = enqueue_owners({})
        context.caches.addresses = self

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Return the informers for claims and addresses."""
        return self._claims, self._addresses

    def setup_watches(self, queues: Queues) -> None:
        """Enqueue the machine that a changed claim or address belongs to."""
        self._enqueue_machine = enqueue_owners(queues)
        self._claims.add_handler(self._enqueue_machine, own_writes=False)
        self._addresses.add_handler(self._enqueue_machine_of_address)

    async def of_machine(
        self, machine: JSON, cluster: Cluster
    ) -> tuple[ClaimedAddress, ...] | Waiting:
        """Return one address for each pool, in the order in the spec, or Waiting.

        All claims are created before Waiting is returned for the first time.
        """
        pools = metadata.items(machine, "spec", "addressesFromPools")
        results = [
            await self._claimed_address(machine, cluster, index, pool)
            for index, pool in enumerate(pools)
        ]
        waits = [result for result in results if isinstance(result, Waiting)]
        if waits:
            return waits[0]
        return tuple(result for result in results if isinstance(result, ClaimedAddress))

    async def _claimed_address(
        self, machine: JSON, cluster: Cluster, index: int, pool: JSON
    ) -> ClaimedAddress | Waiting:
        # The name contains the position, because two entries may name the same pool.
        name = f"{metadata.name(machine)[:_LONGEST_STEM]}-{index}"
        key = NamespacedName(metadata.namespace(machine), name)
        obj = self._claims.get(key)
        if obj is None:
            return await self._create_claim(machine, cluster, key, pool)
        claim = self._dialect.read_claim(obj)
        is_owned = metadata.uid(machine) in _owners(obj)
        if not is_owned and not _has_lost_owner(obj, claim, cluster, _pool_reference(pool)):
            return _waiting_for_foreign(f"IPAddressClaim {name} exists, but is not this machine's")
        await self._keep_owned(obj, machine, is_owned=is_owned)
        found = self._addresses.get(NamespacedName(key.namespace, claim.address_name))
        if not claim.address_name or found is None:
            return _waiting(f"IPAddressClaim {name} has no address yet{_ready_message(obj)}")
        address = self._dialect.read_address(found)
        return ClaimedAddress(address.address, address.prefix, address.gateway, claim.pool.name)

    async def _keep_owned(self, claim: JSON, machine: JSON, *, is_owned: bool) -> None:
        owners = metadata.current_owners(claim, machine)
        if not is_owned:
            owners = [*owners, _build_controller_reference(machine)]
        new = {**claim, "metadata": {**claim["metadata"], "ownerReferences": owners}}
        with suppress(NotFoundError):
            await write(
                self._client, self._claims.resource, claim, new, self._claims.update_from_write
            )

    async def _create_claim(
        self, machine: JSON, cluster: Cluster, key: NamespacedName, pool: JSON
    ) -> Waiting:
        labels = {constants.CLUSTER_NAME_LABEL: cluster.name}
        # Without the label, neither this manager nor an IPAM provider with the same filter would
        # see the claim.
        watch_filter = metadata.labels(machine).get(constants.WATCH_FILTER_LABEL)
        if watch_filter is not None:
            labels[constants.WATCH_FILTER_LABEL] = watch_filter
        claim = {
            "apiVersion": self._claims.resource.api_version,
            "kind": self._claims.resource.kind,
            "metadata": {
                "name": key.name,
                "namespace": key.namespace,
                "labels": labels,
                "ownerReferences": [_build_controller_reference(machine)],
            },
            "spec": self._dialect.build_claim_spec(_pool_reference(pool), cluster.name),
        }
        try:
            await self._client.create(self._claims.resource, claim)
        except AlreadyExistsError:
            # The claim may be another machine's; that is checked once it is in the cache.
            return _waiting_for_foreign(f"IPAddressClaim {key.name} is not in the cache yet")
        return _waiting(f"IPAddressClaim {key.name} has no address yet")

    def _enqueue_machine_of_address(self, change: Delta) -> None:
        address = self._dialect.read_address(change.latest)
        claim = self._claims.get(NamespacedName(address.namespace, address.claim_name))
        if claim is not None:
            self._enqueue_machine(Delta(claim, claim))


def _pool_reference(pool: JSON) -> ObjectRef:
    return ObjectRef(
        metadata.text(pool, "apiGroup"),
        metadata.text(pool, "kind"),
        metadata.text(pool, "name"),
    )


def _build_controller_reference(machine: JSON) -> JSON:
    return {
        "apiVersion": machine["apiVersion"],
        "kind": machine["kind"],
        "name": metadata.name(machine),
        "uid": metadata.uid(machine),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _has_lost_owner(obj: JSON, claim: IPAddressClaim, cluster: Cluster, pool: ObjectRef) -> bool:
    """Return whether the claim ``obj`` of a machine lacks only its owner (SM-11)."""
    labelled = metadata.labels(obj).get(constants.CLUSTER_NAME_LABEL) == cluster.name
    is_free = not metadata.items(obj, "metadata", "ownerReferences")
    return is_free and labelled and claim.pool == pool and not metadata.is_deleting(obj)


def _owners(obj: JSON) -> list[str]:
    return [
        metadata.text(item, "uid") for item in metadata.items(obj, "metadata", "ownerReferences")
    ]


def _ready_message(claim: JSON) -> str:
    """Return the message of the claim's Ready condition; empty if it is True or missing."""
    found = conditions.find(
        metadata.items(claim, "status", "conditions"), constants.READY_CONDITION
    )
    if found is None or found.get("status") == "True":
        return ""
    return f": {found.get('reason', '')}: {found.get('message', '')}"


def _waiting(message: str) -> Waiting:
    return Waiting(REASON_WAITING, message, None)


def _waiting_for_foreign(message: str) -> Waiting:
    """Return Waiting for a change of a claim that need not name the machine as its owner.

    Events of such a claim do not enqueue the machine.
    """
    return Waiting(REASON_WAITING, message)
