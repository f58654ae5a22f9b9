"""Identities' Secrets, watched without their data and read by name when needed.

The manager may be allowed to read the Secrets of all namespaces.  It neither receives nor keeps the
data of Secrets that no identity names, so its memory use does not depend on what tenants create.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object
from capsmith_runtime.errors import NotFoundError
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName, Selection, key_of, version_of
from capsmith_runtime.kube.store import Delta
from capsmith_runtime.reconcile.caches import BY_OWNER, Caches, owner_uids
from capsmith_runtime.reconcile.kinds import SECRET

KEPT_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the cached Secret values in bytes; the least recently used are dropped first."""


BY_FINALIZER: Final = "finalizer"


def finalizer_value(namespace: str, finalizer: str) -> str:
    """Return the BY_FINALIZER index key for Secrets in ``namespace`` that have ``finalizer``."""
    return f"{namespace} {finalizer}"


def _finalizers(secret: JSON) -> Iterable[str]:
    for finalizer in metadata.finalizers(secret):
        yield finalizer_value(metadata.namespace(secret), finalizer)


_INDEXES: Final = {BY_OWNER: owner_uids, BY_FINALIZER: _finalizers}


class _Content(NamedTuple):
    """The values in one version of a Secret."""

    uid: str
    version: int
    values: Mapping[str, str]
    size: int


class IdentitySecrets:
    """Reads the Secrets that identities name; the manager runs the informers.

    However many objects use a Secret, its values are read only once after each change.
    """

    def __init__(
        self, core: Caches, kinds: Iterable[IdentityKind], *, kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._client = core.client
        self._kept_bytes = kept_bytes
        self._contents: OrderedDict[NamespacedName, _Content] = OrderedDict()
        # Hashes of the data as last read; Python's hashes are seeded and do not reveal the values.
        self._hashes: dict[NamespacedName, int] = {}
        self._handler: Callable[[JSON], None] | None = None
        self._reading: WeakValueDictionary[NamespacedName, asyncio.Lock] = WeakValueDictionary()
        scope = core.scope
        selections = {
            False: (Selection(namespace=scope.own_namespace, metadata_only=True),),
            # Secrets of Helm, of core and of ServiceAccounts have other types, and are many.
            True: scope.select(fields="type=Opaque", metadata_only=True),
        }
        self.informers = {
            namespaced: core.informer(SECRET, selections[namespaced], _INDEXES)
            for namespaced in sorted(
                {kind.resource.namespaced for kind in kinds if kind.refers_to_secret}
            )
        }
        """Informers of Secret metadata, by whether the identities that name them are namespaced."""
        for informer in self.informers.values():
            informer.add_handler(self._forget_deleted)

    def set_handler(self, handler: Callable[[JSON], None]) -> None:
        """Register a function to call with each Secret whose data have changed since the last read.

        The watch cannot distinguish changes to data from changes to labels.
        """
        self._handler = handler

    def find(self, key: NamespacedName, *, namespaced: bool) -> JSON | None:
        """Return the metadata of a Secret from the cache, or None if it is not cached.

        ``namespaced`` is true for the Secrets of namespaced identities.
        """
        return self.informers[namespaced].get(key)

    async def read(self, key: NamespacedName, *, namespaced: bool) -> Mapping[str, str] | None:
        """Return a Secret's data as strings, at least as recent as the cached version.

        Returns None if the Secret does not exist or is not cached yet.  ``namespaced`` is true for
        the Secrets of namespaced identities.  Raises ValueError if a value is not base64 or not
        UTF-8, and ApiError if the API server does not respond.
        """
        watched = self.find(key, namespaced=namespaced)
        if watched is None:
            return None
        # Many machines of one identity read it at the same time: the first one sends the request.
        async with self._reading.setdefault(key, asyncio.Lock()):
            content = self._contents.get(key)
            if content is not None and _is_current(content, watched):
                self._contents.move_to_end(key)
                return content.values
            return await self._request(key)

    async def _request(self, key: NamespacedName) -> Mapping[str, str] | None:
        # If the request fails, no outdated values may remain.
        self._contents.pop(key, None)
        try:
            secret = await self._client.get(SECRET, key)
        except NotFoundError:
            return None
        self._compare(secret)
        values = decode_secret(secret)
        size = sum(len(name) + len(value) for name, value in values.items())
        self._keep(key, _Content(metadata.uid(secret), version_of(secret), values, size))
        return values

    def _compare(self, secret: JSON) -> None:
        """Call the handler if the data of ``secret`` differ from the last read."""
        key, latest = key_of(secret), hash(frozenset(metadata.mapping(secret, "data").items()))
        # The first read is not a change, whatever happened before this process started.
        former = self._hashes.get(key, latest)
        # Only the hash is kept for all Secrets, since values may be dropped at any time.
        self._hashes[key] = latest
        if former != latest and self._handler is not None:
            self._handler(secret)

    def _keep(self, key: NamespacedName, content: _Content) -> None:
        self._contents[key] = content
        total = sum(each.size for each in self._contents.values())
        while total > self._kept_bytes:
            _, oldest = self._contents.popitem(last=False)
            total -= oldest.size

    def _forget_deleted(self, change: Delta) -> None:
        if change.new is None:
            self._contents.pop(change.key, None)
            self._hashes.pop(change.key, None)


def decode_secret(secret: Object) -> dict[str, str]:
    """Return a Secret's data as strings.

    Raises ValueError if a value is not base64 or not UTF-8.
    """
    try:
        return {
            key: base64.b64decode(value, validate=True).decode()
            for key, value in metadata.mapping(secret, "data").items()
        }
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _is_current(content: _Content, watched: JSON) -> bool:
    return content.uid == metadata.uid(watched) and version_of(watched) <= content.version
