"""References to identities: in the spec of an object, or recorded in its metadata.

Machines and pools use the identity of their infrastructure cluster. If a tool deletes all of a
cluster's objects together, the infrastructure cluster may be gone first. In that case, the record
still names the credentials for deleting a machine's infrastructure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from capsmith_runtime.contract import metadata, records
from capsmith_runtime.contract.model import Object
from capsmith_runtime.contract.records import Record
from capsmith_runtime.identity.kinds import IdentityKind
from capsmith_runtime.kube.client import JSON, NamespacedName

SOURCE_REF: Final = "sourceIdentityRef"
"""Field of an identity's spec that names the identity from which it is derived."""
MAX_CHAIN: Final = 8
"""Maximum length of a chain of identities, each of which is derived from the next."""


def read_reference(obj: JSON) -> Object:
    """Return an object's identity reference, or an empty object if it has none."""
    return metadata.mapping(obj, "spec", "identityRef")


def read_source(kind: IdentityKind, identity: JSON) -> Object:
    """Return an identity's reference to its source identity, or {} if ``kind`` has no sources."""
    return metadata.mapping(identity, "spec", SOURCE_REF) if kind.sources else {}


def find_source_keys(kinds: Iterable[IdentityKind], identity: JSON) -> Iterator[str]:
    """Yield the index keys of an identity's sources, direct and indirect, without duplicates.

    The direct source is named in the identity's spec.  The others come from the recorded chain,
    because an identity in the middle of the chain may be missing.
    """
    kinds = tuple(kinds)
    kind = find_kind(kinds, identity)
    if kind is None or not kind.sources:
        return
    direct = find_keys(kind.select_sources(kinds), read_source(kind, identity), identity)
    recorded = (find_keys(kinds, each, identity) for each in read_sources_record(identity))
    yield from dict.fromkeys(chain(direct, chain.from_iterable(recorded)))


def find_kind(kinds: Iterable[IdentityKind], reference: Object) -> IdentityKind | None:
    """Return the kind of identity that ``reference`` names, or None if ``kinds`` lacks it."""
    name = metadata.text(reference, "kind")
    return next((kind for kind in kinds if kind.resource.kind == name), None)


def find_keys(kinds: Iterable[IdentityKind], reference: Object, user: JSON) -> Iterator[str]:
    """Yield the index key of the identity that an object refers to, if there is one.

    ``user`` is the object, and ``reference`` is its reference to the identity.
    """
    kind, name = find_kind(kinds, reference), metadata.text(reference, "name")
    if kind is not None and name:
        yield identity_value(kind.resource.kind, kind.find_in(name, user))


def identity_value(kind: str, key: NamespacedName) -> str:
    """Return the BY_IDENTITY index key of the identity with this kind and key."""
    return f"{kind}/{key.namespace}/{key.name}"


def split_value(value: str) -> tuple[str, NamespacedName]:
    """Return the kind and the key of the identity with this BY_IDENTITY index key."""
    kind, namespace, name = value.split("/", 2)
    return kind, NamespacedName(namespace, name)


def read_record(obj: JSON) -> Object | None:
    """Return the recorded identity reference, or None if ``obj`` has no record.

    The reference is empty if the infrastructure cluster had no identity.
    """
    value = records.read(obj, _group(obj), records.IDENTITY)
    if value is None:
        return None
    kind, _, name = value.partition("/")
    return {"kind": kind, "name": name} if name else {}


def read_sources_record(obj: JSON) -> Iterator[Object]:
    """Yield the references to the sources that are recorded on an identity or on a user of one."""
    recorded = records.read(obj, _group(obj), records.SOURCES) or ""
    # A user may write any number of them, each of which is looked up at each change.
    for entry in recorded.split(",", MAX_CHAIN)[:MAX_CHAIN]:
        kind, _, name = entry.partition("/")
        yield {"kind": kind, "name": name}


def create_record(obj: JSON, chain: Sequence[tuple[str, str]]) -> Mapping[Record, str]:
    """Return the records of the identity that ``obj`` uses, and of its sources.

    ``chain`` has their kinds and names; it is empty if the object uses no identity.
    """
    own, *sources = [f"{kind}/{name}" for kind, name in chain] or [""]
    if not sources and not records.read(obj, _group(obj), records.SOURCES):
        return {records.IDENTITY: own}
    return {records.IDENTITY: own, records.SOURCES: ",".join(sources)}


def create_sources_record(identity: JSON, sources: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """Return the name and value of the annotation that records an identity's sources.

    ``sources`` are the kinds and names of all identities from which it is derived.
    """
    name = records.SOURCES.build_annotation_name(_group(identity))
    return name, ",".join(f"{kind}/{name}" for kind, name in sources)


def _group(obj: JSON) -> str:
    return metadata.text(obj, "apiVersion").partition("/")[0]
