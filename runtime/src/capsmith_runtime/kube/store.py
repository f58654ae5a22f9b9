"""A cache of one kind, updated by the watch and by this process's own writes.

Invariants: an object never returns to an older resource version, and a read after one of this
process's writes returns at least that write, even though the watch delivers it later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from capsmith_runtime.kube.client import JSON, NamespacedName, is_gone, key_of, version_of
from capsmith_runtime.kube.encoded_objects import EncodedObjects, create_id
from capsmith_runtime.kube.log import get_logger

IndexFunction = Callable[[JSON], Iterable[str]]
Projection = Callable[[JSON], JSON]

MAX_VALUES: Final = 20_000
"""Maximum number of values of an object in an index; a list in a user's object can be longer."""
_log = get_logger("cache")


def keep_metadata(obj: JSON) -> JSON:
    """Return the part of an object that a metadata-only list contains."""
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata") if name in obj}


class Delta(NamedTuple):
    """A change to an object: `old` is None if it was added, `new` is None if it was deleted."""

    old: JSON | None
    new: JSON | None

    @property
    def key(self) -> NamespacedName:
        """Return the key of the changed object."""
        return key_of(self.latest)

    @property
    def latest(self) -> JSON:
        """Return the latest known state of the object, even if it was deleted."""
        found = self.new or self.old
        assert found is not None
        return found


class Cache:
    """Objects of one kind, which can be found by key or by index.

    Each of ``namespaces`` has its own watch; if there are none, one watch delivers all objects.
    """

    def __init__(
        self,
        projection: Projection | None = None,
        indexes: Mapping[str, IndexFunction] = {},
        namespaces: Sequence[str] = (),
    ) -> None:
        # Watches of different namespaces advance separately.  The empty name is the watch of all
        # objects.
        self._seen = dict.fromkeys(namespaces or ("",), 0)
        self._projection = projection
        self._objects = EncodedObjects()
        self._functions = dict(indexes)
        self._indexes = {name: _Index() for name in indexes}
        # Versions that this process wrote and whose events the watch has not delivered yet.
        self._own: dict[NamespacedName, set[int]] = {}

    def add_index(self, name: str, function: IndexFunction) -> None:
        """Add an index under ``name``; ``function`` yields an object's index keys.

        Call this before the cache has objects.
        """
        assert not self._objects, "an index of objects that are cached already would be empty"
        self._functions[name] = function
        self._indexes[name] = _Index()

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def seen(self) -> int:
        """Return the latest resource version for which all watches are complete."""
        return min(self._seen.values())

    def seen_in(self, namespace: str) -> int:
        """Return the latest resource version for which one watch is complete.

        ``namespace`` is one of those passed to the constructor, or empty if there were none.
        """
        return self._seen[namespace]

    def advance(self, namespace: str, version: int) -> None:
        """Record that the watch of ``namespace`` is complete up to ``version``."""
        self._seen[namespace] = max(self._seen[namespace], version)

    def get(self, key: NamespacedName) -> JSON | None:
        """Return the object, or None if it is not cached.

        The object is shared, so copy it before you change anything.
        """
        return self._objects.get(key)

    def items(self) -> Sequence[JSON]:
        """Return all objects, in no particular order; each is decoded when it is read."""
        return self._objects.select()

    def by_index(self, name: str, value: str) -> Sequence[JSON]:
        """Return the objects for which the index function called ``name`` yielded `value`.

        Each is decoded when it is read.
        """
        return self._objects.select(self._indexes[name].find(value))

    def keys_by_index(self, name: str, value: str) -> list[NamespacedName]:
        """Return the keys of the objects that ``by_index`` returns, without decoding them."""
        return self._objects.find_keys(self._indexes[name].find(value))

    def keys_in(self, namespace: str) -> list[NamespacedName]:
        """Return the keys of all objects in a namespace, without decoding them."""
        return self._objects.find_keys_in(namespace)

    def observe(self, obj: JSON) -> Delta | None:
        """Store an added or modified object from the watch, and return the change, if any.

        The event for one of this process's own writes changes nothing, because the response is
        already in the cache.
        """
        key, version = key_of(obj), version_of(obj)
        self.advance(self._watch_of(key), version)
        if self._is_echo(key, version):
            return None
        known = self._objects.version(key)
        if known is None:
            return None if self._has_ended(key, version) else self._put(key, obj)
        if known < version:
            return self._put(key, obj)
        # The response to this process's own write already contained another writer's change.
        return self._repeat(key) if known > version else None

    def observe_deleted(self, obj: JSON) -> Delta | None:
        """Remove an object that the watch reports as deleted, and return the change.

        Returns None if the object was not cached, or if a newer object has its name.
        """
        key = key_of(obj)
        self.advance(self._watch_of(key), version_of(obj))
        cached = self._objects.get(key)
        if cached is not None and cached["metadata"]["uid"] != obj["metadata"]["uid"]:
            return None  # this process has created another object of the same name since then
        self._own.pop(key, None)
        return self._remove(key)

    def update_from_write(self, obj: JSON) -> Delta | None:
        """Store the response to this process's write, and return the change to the cache.

        Returns None if the cache is unchanged: because the watch has already delivered this state
        or a later one, or because the object is not cached and may no longer match the selection. A
        response that shows that the object is gone removes the object.
        """
        key, version = key_of(obj), version_of(obj)
        known = self._objects.version(key)
        # At or below `seen`, the watch has delivered this state or a later one already, maybe even
        # the deletion of the object: storing the response would bring it back.
        if known is None:
            return None
        if version <= max(self._seen[self._watch_of(key)], known):
            return None
        self._own.setdefault(key, set()).add(version)
        return self._remove(key) if is_gone(obj) else self._put(key, obj)

    def add_listed(self, listed: EncodedObjects, obj: JSON, version: int) -> None:
        """Add an object from a list that was read at ``version`` to ``listed``.

        If it is cached at the same resource version, the cached copy is shared.
        """
        key = key_of(obj)
        is_cached = self._objects.version(key) == version_of(obj)
        if is_cached and not self._is_restored(version, self._watch_of(key)):
            listed.share(key, self._objects)
        else:
            listed.put(key, obj)

    def replace(self, listed: EncodedObjects, version: int, namespace: str = "") -> list[Delta]:
        """Replace the content with a list that was read at `version`, and return the changes.

        If watches are limited to namespaces, only the objects in ``namespace`` are replaced.
        Objects that this process wrote after the list was read are kept: the list does not contain
        them, but the watch that starts at `version` will deliver them.
        """
        # A server that was restored from a backup gives versions to other states a second time, in
        # which case nothing is kept.
        is_restored = self._is_restored(version, namespace)
        kept_above = float("inf") if is_restored else version
        self._seen[namespace] = version
        # The events of these writes will not arrive, and they may have hidden another writer's
        # change.
        answered = self._end_own_writes(namespace, kept_above)
        changes: list[Delta] = []
        for key, found in listed.versions():
            known = self._objects.version(key)
            ended = known is None and self._has_ended(key, found)
            is_unchanged = known == found and not is_restored
            is_outdated = known is None or (known <= kept_above and not is_unchanged)
            if is_outdated and not ended:
                changes += _split(self._put(key, listed[key]), is_restored)
            elif known is not None and key in answered:
                changes.append(self._repeat(key))
        for key, known in self._objects.find_others(listed):
            if self._watch_of(key) == namespace and known <= kept_above:
                changes += [change] if (change := self._remove(key)) else []
        return changes

    def project(self, obj: JSON) -> JSON:
        """Remove the parts of an object that the cache does not keep, and return the rest.

        The argument is modified: ``managedFields`` and kubectl's last applied configuration are
        removed from it.
        """
        metadata = obj["metadata"]
        metadata.pop("managedFields", None)
        if annotations := metadata.get("annotations"):
            annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
        return self._projection(obj) if self._projection else obj

    def _is_restored(self, version: int, namespace: str) -> bool:
        """Return whether a list at ``version`` comes from a server that had later versions."""
        return version < self._seen[namespace]

    def _watch_of(self, key: NamespacedName) -> str:
        return key.namespace if key.namespace in self._seen else ""

    def _end_own_writes(self, namespace: str, kept_above: float) -> set[NamespacedName]:
        """Forget this process's writes up to a version, and return the keys of their objects."""
        ended = set()
        for key, versions in list(self._own.items()):
            newer = {own for own in versions if own > kept_above}
            if self._watch_of(key) != namespace or newer == versions:
                continue
            ended.add(key)
            if newer:
                self._own[key] = newer
            else:
                del self._own[key]
        return ended

    def _has_ended(self, key: NamespacedName, version: int) -> bool:
        """Return whether this process has removed the object in a write after ``version``."""
        return any(own > version for own in self._own.get(key, ()))

    def _is_echo(self, key: NamespacedName, version: int) -> bool:
        own = self._own.get(key)
        if own is None or version not in own:
            return False
        own.discard(version)
        if not own:
            del self._own[key]
        return True

    def _repeat(self, key: NamespacedName) -> Delta:
        """Return a change that reports an unchanged object again."""
        cached = self._objects.get(key)
        return Delta(cached, cached)

    def _put(self, key: NamespacedName, obj: JSON) -> Delta:
        old = self._objects.get(key)
        former = {} if old is None else self._find_values(key, old)
        self._objects.put(key, obj)
        for index, values in self._find_values(key, obj).items():
            # Most changes are of the status, which few indexes contain.
            if values != (before := former.get(index, [])):
                self._update_index(index, key, before, values)
        return Delta(old, obj)

    def _update_index(self, name: str, key: NamespacedName, old: list[str], new: list[str]) -> None:
        index, found = self._indexes[name], create_id(key)
        for value in old:
            index.discard(value, found)
        for value in new:
            index.add(value, found)

    def _remove(self, key: NamespacedName) -> Delta | None:
        old = self._objects.get(key)
        if old is None:
            return None
        self._objects.pop(key)
        for index, values in self._find_values(key, old).items():
            self._update_index(index, key, values, [])
        return Delta(old, None)

    def _find_values(self, key: NamespacedName, obj: JSON) -> dict[str, list[str]]:
        """Return the values that the function of each index yields for an object."""
        found: dict[str, list[str]] = {}
        for name, function in self._functions.items():
            try:
                found[name] = list(dict.fromkeys(islice(function(obj), MAX_VALUES)))
            except Exception as error:
                # The content of one object must not end the caches of all tenants.
                _log.error("index failed", index=name, object=str(key), exc_info=error)
                found[name] = []
        return found


def _split(change: Delta, is_restored: bool) -> tuple[Delta, ...]:
    """Return a deletion and an addition if the change replaced an object by one of the same name.

    A list shows only the newer object.  What was derived from an object before its server was
    restored may have a later version than the object now, and must not count as newer.
    """
    old, new = change
    if old is None or new is None:
        return (change,)
    if old["metadata"]["uid"] == new["metadata"]["uid"] and not is_restored:
        return (change,)
    return Delta(old, None), Delta(None, new)


class _Index:
    """Ids of objects by a value that is derived from them, in the order in which they are added.

    Most values, such as UIDs and provider ids, belong to a single object.
    """

    def __init__(self) -> None:
        # A dictionary for each value only if it has several objects: it takes more memory than the
        # id.  Dictionaries keep the order, which makes runs repeatable.
        self._ids: dict[str, str | dict[str, None]] = {}

    def find(self, value: str) -> Iterable[str]:
        """Return the ids of all objects with ``value``."""
        found = self._ids.get(value, ())
        return (found,) if isinstance(found, str) else found

    def add(self, value: str, added: str) -> None:
        """Add the object with the id ``added`` under ``value``."""
        found = self._ids.get(value)
        if found is None or found == added:
            self._ids[value] = added
        elif isinstance(found, str):
            self._ids[value] = {found: None, added: None}
        else:
            found[added] = None

    def discard(self, value: str, removed: str) -> None:
        """Remove the object with the id ``removed`` from ``value``, if it was added."""
        found = self._ids.get(value)
        if found == removed:
            del self._ids[value]
        elif isinstance(found, dict):
            found.pop(removed, None)
            if not found:
                del self._ids[value]
