"""Reservations: addresses that are allocated but have no IPAddress yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from capsmith_runtime.contract import metadata
from capsmith_runtime.ipam.address_ranges import address_of, parsed
from capsmith_runtime.ipam.pool_usage import PoolUsage
from capsmith_runtime.kube.client import JSON, NamespacedName


@dataclass(frozen=True, slots=True)
class Reservation:
    """An address for the IPAddress that will be created under the name of the claim."""

    number: int
    claim: NamespacedName
    uid: str
    """UID of the claim."""


@dataclass(frozen=True, slots=True)
class ReservationHolder:
    """Holder of an address in the usage of the pool, until the IPAddress holds it."""

    uid: str


class Reservations:
    """The reservations of one pool, by UID of the claim; each holds its address in the usage."""

    def __init__(self, usage: PoolUsage) -> None:
        self._usage = usage
        self._by_uid: dict[str, Reservation] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def get(self, uid: str) -> Reservation | None:
        """Return the reservation of a claim."""
        return self._by_uid.get(uid)

    def snapshot(self) -> Mapping[str, Reservation]:
        """Return a copy of all reservations, to be restored by :meth:`replace_all`."""
        return dict(self._by_uid)

    def put(self, reservation: Reservation) -> None:
        """Add a reservation, replacing an earlier one of the same claim."""
        before = self._by_uid.get(reservation.uid)
        if before == reservation:
            return
        if before is not None:
            self._remove(before)
        self._by_uid[reservation.uid] = reservation
        self._usage.add_holder(reservation.number, ReservationHolder(reservation.uid))

    def replace_all(self, reservations: Mapping[str, Reservation]) -> bool:
        """Keep exactly these reservations; return whether an address became free."""
        obsolete = [item for uid, item in self._by_uid.items() if reservations.get(uid) != item]
        freed = [self._remove(item) for item in obsolete]
        for reservation in reservations.values():
            self.put(reservation)
        return any(freed)

    def entries(self) -> list[JSON]:
        """Return the reservations in the form of the pool's status."""
        return [
            {
                "address": str(address_of(item.number)),
                "claimUID": item.uid,
                "claimName": item.claim.name,
                "claimNamespace": item.claim.namespace,
            }
            for item in self._by_uid.values()
        ]

    def _remove(self, reservation: Reservation) -> bool:
        del self._by_uid[reservation.uid]
        return self._usage.remove_holder(reservation.number, ReservationHolder(reservation.uid))


def reservations_of(pool: JSON) -> Iterator[Reservation]:
    """Yield the reservations in the status of a pool, including those of other managers."""
    for entry in metadata.items(pool, "status", "allocation", "reservations"):
        number = parsed(metadata.text(entry, "address"))
        if number is not None:
            claim = NamespacedName(
                metadata.text(entry, "claimNamespace"), metadata.text(entry, "claimName")
            )
            yield Reservation(number, claim, metadata.text(entry, "claimUID"))
