"""Decides which object holds an external id or provider id, because users can copy ids.

A user who may create an object may also set ``spec.providerID``, ``spec.providerIDList`` and the
external id annotation to another object's ids.  The author's code would then treat that object's
servers as its own, and delete them.  Therefore only one object holds an id, and the author's code
is not called for any other object with that id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator
from functools import partial
from typing import Final

from capsmith_runtime.contract import conditions, constants, external_id, metadata
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.kube.encoded_objects import create_id
from capsmith_runtime.kube.informer import Informer
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.reconcile.sessions import ReportedChange

_BY_PROVIDER_ID: Final = "provider-id"
# Finds external ids as well: no two of them have the same short form.
_BY_SHORT_ID: Final = "short-id"
_COMPARED_AT_ONCE: Final = 5000
"""Number of objects that are compared before other tasks run."""
_RETRY_SECONDS: Final = 30.0
"""Seconds until the ids are checked again, in case their holder is gone by then."""


class HeldIds:
    """Index of the external ids and provider ids that a provider's objects hold."""

    def __init__(
        self, informers: Iterable[Informer] = (), *, groups: Collection[str] | None = None
    ) -> None:
        """Index the objects of ``informers``; see :meth:`index`.

        ``groups`` are the API groups whose external ids count, or None for each object's own group.
        """
        self._groups = groups
        self._informers: dict[str, list[Informer]] = {
            _BY_PROVIDER_ID: [],
            _BY_SHORT_ID: [],
        }
        # Kept, because thousands of objects may have the same id: to decode them all would block
        # the event loop.
        self._standings: dict[Informer, dict[str, str]] = {}
        for informer in informers:
            self.index(informer)

    def index(self, informer: Informer, *, has_provider_ids: bool = True) -> None:
        """Index the objects of a kind; call this before its informer runs.

        ``has_provider_ids`` is false for pools with Machines, because their machines hold the
        provider ids.
        """
        standings = self._standings.setdefault(informer, {})
        informer.add_handler(partial(_update_standing, standings))
        informer.add_index(_BY_SHORT_ID, self._short_ids)
        self._informers[_BY_SHORT_ID].append(informer)
        if has_provider_ids:
            informer.add_index(_BY_PROVIDER_ID, _provider_ids)
            self._informers[_BY_PROVIDER_ID].append(informer)

    def find_taken(self, obj: JSON) -> Waiting | None:
        """Return Waiting if another object holds one of ``obj``'s ids, or None if none does."""
        return next((each for each, _ in self._check_ids(obj) if each is not None), None)

    async def find_taken_of_many(self, obj: JSON) -> Waiting | None:
        """Return what :meth:`find_taken` returns for an object that may have thousands of ids.

        A user can copy the list of a pool to many others; other tasks run while it is compared.
        """
        compared = 0
        for taken, count in self._check_ids(obj):
            if taken is not None:
                return taken
            compared += count
            if compared >= _COMPARED_AT_ONCE:
                compared = 0
                await asyncio.sleep(0)
        return None

    def _check_ids(self, obj: JSON) -> Iterator[tuple[Waiting | None, int]]:
        """Yield, for each id, Waiting if another object holds it, and how many objects have it."""
        name, standing = metadata.name(obj), _standing(obj)
        # External ids first, because the author's code finds infrastructure by them.
        for index, values, reason, kind in (
            (
                _BY_SHORT_ID,
                self._external_ids,
                constants.REASON_EXTERNAL_ID_TAKEN,
                "external id",
            ),
            (_BY_PROVIDER_ID, _provider_ids, constants.REASON_PROVIDER_ID_TAKEN, "provider id"),
        ):
            for value in values(obj):
                is_held, count = self._compare(name, standing, index, value)
                yield _waiting(reason, kind, value) if is_held else None, count

    def find_objects(self, change: ReportedChange) -> Iterator[JSON]:
        """Yield the objects that hold the id that ``change`` reports."""
        for index, value in (
            (_BY_SHORT_ID, change.external_id and external_id.shorten(change.external_id)),
            (_BY_SHORT_ID, change.short_id),
            (_BY_PROVIDER_ID, change.provider_id),
        ):
            for informer in self._informers[index] if value else ():
                yield from informer.by_index(index, value)

    def _external_ids(self, obj: JSON) -> Iterator[str]:
        group = metadata.text(obj, "apiVersion").partition("/")[0]
        for each in (group,) if self._groups is None else self._groups:
            value = external_id.stored(obj, each)
            if value is not None:
                yield value

    def _short_ids(self, obj: JSON) -> Iterator[str]:
        for value in self._external_ids(obj):
            yield external_id.shorten(value)

    def _compare(self, name: str, standing: str, index: str, value: str) -> tuple[bool, int]:
        """Return whether an object other than this one holds an id, and how many have it.

        All objects compute the same order, so exactly one of them considers itself the holder.
        Users write neither the uid nor the status: an external id with its own object's uid is not
        a copy, and a provisioned object got its ids from the author's code.  A move changes uids
        and drops the status, so the older object counts as the holder until the status is written
        again.
        """
        uid, count = _uid(standing), 0
        if external_id.build(name, uid) == value:
            return False, count
        # A UID contains no dot, but a name may.
        original, _, original_uid = value.rpartition(".")
        indexed = external_id.shorten(value) if index == _BY_SHORT_ID else value
        for informer in self._informers[index]:
            standings = self._standings[informer]
            for key in informer.keys_by_index(index, indexed):
                other, count = standings[create_id(key)], count + 1
                is_original = key.name == original and _uid(other) == original_uid
                if (is_original or other < standing) and _uid(other) != uid:
                    return True, count
        return False, count


def _update_standing(standings: dict[str, str], change: Delta) -> None:
    if change.new is None:
        standings.pop(create_id(change.key), None)
    else:
        standings[create_id(change.key)] = _standing(change.new)


def _standing(obj: JSON) -> str:
    """Return a sort key that puts the holder of an id before the objects that copied the id."""
    # Timestamps have whole seconds; the UID decides between objects of the same second.
    created = metadata.text(obj, "metadata", "creationTimestamp")
    return f"{not _is_provisioned(obj):d} {created} {metadata.uid(obj)}"


def _uid(standing: str) -> str:
    return standing.rpartition(" ")[2]


def _is_provisioned(obj: JSON) -> bool:
    status = metadata.mapping(obj, "status")
    # Of control planes: in contract v1beta1, `initialized`.
    done = (*metadata.mapping(status, "initialization").values(), status.get("initialized"))
    if any(done) or status.get("ready"):
        return True
    shown = metadata.items(status, "conditions")
    ready = conditions.find(shown, constants.READY_CONDITION) or {}
    return ready.get("status") == "True"


def _provider_ids(obj: JSON) -> Iterable[str]:
    spec = metadata.mapping(obj, "spec")
    own = metadata.text(spec, "providerID")
    listed = (each for each in metadata.items(spec, "providerIDList") if isinstance(each, str))
    return (*((own,) if own else ()), *listed)


def _waiting(reason: str, name: str, value: str) -> Waiting:
    # The message does not name the other object: the users of one namespace must not learn what
    # other namespaces contain.
    message = f"{name} {value} belongs to another object: nothing is created, changed or deleted"
    return Waiting(reason, message, requeue_after=_RETRY_SECONDS)
