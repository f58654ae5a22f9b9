"""Conversion of whole objects between API versions, without loss (CRD-15)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from capsmith_runtime.contract.field_paths import (
    FieldPaths,
    read_at_contract_paths,
    write_at_own_paths,
)
from capsmith_runtime.conversion.fields import AuthorFunctionError, Report, VersionFields
from capsmith_runtime.conversion.shape import (
    Change,
    ConversionContext,
    Versions,
    convert_backward,
    convert_forward,
)
from capsmith_runtime.conversion.values import MISSING, Data, copy_value
from capsmith_runtime.errors import ApiError
from capsmith_runtime.kube.deep_json import is_deep

# When the object is converted back, each field gets its original value, unless it was changed in
# the meantime: where a field still has the value that the annotation's data have in the other
# shape, the annotation's data are restored.
ANNOTATION: Final = "cluster.x-k8s.io/conversion-data"
MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""Maximum size of all annotations of an object.

The API server refuses a response in which a conversion has exceeded it.
"""
PARTS: Final[tuple[str, ...]] = ("spec", "status")
_OTHERS: Final = "others"


def restore_value(original: Any, expected: Any, current: Any) -> Any:
    """Return ``current`` with the values of ``original`` wherever ``current`` equals ``expected``.

    ``expected`` is ``original`` after a conversion to the other version and back.
    """
    if is_equal(current, expected):
        return original
    if all(isinstance(each, dict) for each in (original, expected, current)):
        return _restore_object(original, expected, current)
    # Conditions are a list in JSON but a map by type in meaning: a change of one of them must not
    # drop the restored fields of the others.
    by_type = [_by_type(each) for each in (original, expected, current)]
    if all(each is not None for each in by_type):
        merged = _restore_object(*by_type)
        return list(merged.values())
    return current


def _restore_object(original: Any, expected: Any, current: Any) -> Data:
    merged = {}
    # The current order first: conditions become a list again, whose order should not change.
    for key in (*current, *(key for key in original if key not in current)):
        values = (each.get(key, MISSING) for each in (original, expected, current))
        value = restore_value(*values)
        if value is not MISSING:
            merged[key] = value
    return merged


def _by_type(value: Any) -> Data | None:
    """Return conditions by type, or None if ``value`` is not a list of conditions."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    by_type = {each["type"]: each for each in value if isinstance(each.get("type"), str)}
    conditions = all("status" in each for each in value)
    return by_type if conditions and len(by_type) == len(value) else None


def find_lost_fields(original: Data, converted: Data) -> Data:
    """Return the fields of spec and status whose values ``converted`` does not contain."""
    lost: Data = {}
    for part in PARTS:
        before, after = original.get(part, MISSING), converted.get(part, MISSING)
        if is_equal(before, after) or before is MISSING:
            continue
        if isinstance(before, dict) and isinstance(after, dict):
            lost[part] = {
                key: value
                for key, value in before.items()
                if not is_equal(value, after.get(key, MISSING))
            }
        else:
            lost[part] = before
    return lost


@dataclass(frozen=True, slots=True)
class StoredData:
    """An object's fields in one API version that other versions cannot express."""

    api_version: str
    """API version in the form ``group/version``."""
    data: Data


def encode_stored(stored: Sequence[StoredData]) -> str:
    """Return the annotation's value, in which further entries are nested in the first one."""
    first, *others = ({"apiVersion": each.api_version, **each.data} for each in stored)
    if others:
        first[_OTHERS] = others
    return json.dumps(first, separators=(",", ":"), sort_keys=True)


def decode_stored(text: Any) -> tuple[StoredData, ...]:
    """Return the entries of an annotation, or an empty tuple if it has another format.

    This includes JSON with numbers or characters that no response can have.
    """
    try:
        if is_deep(text.encode()):
            return ()
        first = msgspec.json.decode(text)
    except (AttributeError, TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return ()
    others = first.get(_OTHERS, []) if isinstance(first, dict) else []
    entries = [first, *others] if isinstance(others, list) else [first]
    if not all(isinstance(e, dict) and isinstance(e.get("apiVersion"), str) for e in entries):
        return ()
    return tuple(
        StoredData(entry["apiVersion"], {part: entry[part] for part in PARTS if part in entry})
        for entry in entries
    )


def is_equal(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal in type and value: ``true`` does not equal 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_equal(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_equal, one, other))
    return type(one) is type(other) and bool(one == other)


def has_values_of(value: Any, *others: Any) -> bool:
    """Return whether each value in ``value`` is the one at the same path in one of ``others``.

    A value that is missing must be missing in one of them.  Values that are empty, false or null
    count as missing.
    """
    return _has_values([_drop_unset(each) for each in (value, *others)])


def _has_values(values: Sequence[Any]) -> bool:
    value, *others = values
    if any(is_equal(value, each) for each in others):
        return True
    # Conditions, as in restore_value.
    by_type = [_by_type(each) for each in values]
    if all(each is not None for each in by_type):
        values = by_type
    if not all(isinstance(each, dict) for each in values):
        return False
    keys = {key for each in values for key in each}
    return all(_has_values([each.get(key, MISSING) for each in values]) for key in keys)


def _drop_unset(value: Any) -> Any:
    # A count of 0 stays: it says more than no count.
    if isinstance(value, list):
        return [_drop_unset(item) for item in value]
    if isinstance(value, dict):
        entries = {key: _drop_unset(item) for key, item in value.items()}
        return {
            key: item
            for key, item in entries.items()
            if item not in (None, "", [], {}) and item is not False
        }
    return value


Shape = tuple[str, str]
"""Contract of a version, and the version's name if its fields differ from the hub's."""


class UnknownVersionError(LookupError):
    """Raised if a version is not known yet and must be read from the API server."""

    def __init__(self, group: str, kind: str) -> None:
        super().__init__(f"version of {kind} in {group}")
        self.group = group
        self.kind = kind


class ConversionError(ValueError):
    """Raised if an object cannot be converted; the message is for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedKind:
    """A kind whose API versions follow different contract versions or have different fields."""

    group: str
    kind: str
    contracts: Mapping[str, str]
    """The contract whose format each API version has."""
    changes: tuple[Change, ...]
    hub: str = ""
    """The storage version, or empty if the author's fields are the same in all versions."""
    fields: Mapping[str, VersionFields] = field(default_factory=dict)
    """The versions whose fields differ from the hub's, with the differences."""
    paths: Mapping[str, FieldPaths] = field(default_factory=dict)
    """The versions that have fields of the contract at other paths, with these fields."""

    def shape(self, version: str) -> Shape:
        """Return a version's shape; two versions with the same shape differ only in apiVersion."""
        is_own = version in self.fields or version in self.paths
        return self.contracts[version], version if is_own else ""


class Converter:
    """Converts objects of some kinds between their API versions.

    If the conversion of a single object fails, the API server fails a list across all namespaces.
    Therefore, if ``report`` is set, an author's function may fail when it converts from the hub, as
    for a list: its fields are left out, and the annotation keeps the hub's fields. A function that
    converts to the hub, as for a create, can reject an object.
    """

    def __init__(
        self,
        kinds: tuple[ConvertedKind, ...],
        versions: Versions,
        report: Report | None = None,
    ) -> None:
        self._kinds = {(kind.group, kind.kind): kind for kind in kinds}
        self._versions = versions
        self._report = report

    def convert(self, obj: Data, api_version: str) -> Data:
        """Return ``obj`` in ``api_version`` (``group/version``), without changing ``obj``.

        Raises ConversionError for unknown kinds and versions, and if an author's function fails.
        Raises UnknownVersionError or ApiError if a version is unknown or cannot be read.
        """
        kind = self._kind(obj, api_version)
        source = self._version(kind, str(obj.get("apiVersion")))
        target = self._version(kind, api_version)
        shapes = kind.shape(source), kind.shape(target)
        if shapes[0] == shapes[1]:
            # The annotation stays, too: it holds data for other shapes.
            return {**obj, "apiVersion": api_version}
        # The author's functions lead to the hub and from it, but not between two other versions.
        if kind.hub and kind.shape(kind.hub) not in shapes:
            hub = self.convert(obj, f"{kind.group}/{kind.hub}")
            return self.convert(hub, api_version)
        conversion = _ObjectConversion(kind, source, target, self._context(obj), self._report)
        try:
            return conversion.convert(obj, api_version)
        except AuthorFunctionError as error:
            raise ConversionError(f"{kind.kind} from {source} to {target}: {error}") from error

    def _kind(self, obj: Data, api_version: str) -> ConvertedKind:
        key = (api_version.rpartition("/")[0], str(obj.get("kind")))
        if key not in self._kinds:
            raise ConversionError(f"{key[1]} of {key[0]} is not converted here")
        return self._kinds[key]

    def _version(self, kind: ConvertedKind, api_version: str) -> str:
        group, _, version = api_version.rpartition("/")
        if group != kind.group or version not in kind.contracts:
            raise ConversionError(f"{kind.kind} has no version {api_version}")
        return version

    def _context(self, obj: Data) -> ConversionContext:
        namespace = (obj.get("metadata") or {}).get("namespace") or ""
        return ConversionContext(namespace=namespace, versions=self._versions)


@dataclass(frozen=True, slots=True)
class _ObjectConversion:
    """Conversion of an object between two shapes, at least one of which is the hub's."""

    kind: ConvertedKind
    source: str
    target: str
    context: ConversionContext
    report: Report | None

    def convert(self, obj: Data, api_version: str) -> Data:
        """Return the object in ``api_version``.

        The annotation keeps the fields that it cannot express.
        """
        metadata = copy_value(obj.get("metadata") or {})
        annotations = metadata.pop("annotations", None) or {}
        source = {part: obj[part] for part in PARTS if part in obj}
        converted = self._between(source, self.source, self.target, is_strict=True)
        stored = annotations.get(ANNOTATION)
        try:
            target, text = self._complete(obj, source, converted, stored)
        except (UnknownVersionError, ApiError, RecursionError):
            raise  # decode_stored ignores deep data, so the object itself is deep
        except Exception as error:
            if stored is None:
                raise
            # Any user may write the annotation, and no schema validates it: its content must not
            # fail the conversion, and with it the lists of all other users.
            if self.report is not None:
                self.report(error)
            target, text = self._complete(obj, source, converted, None)
            text = stored if text is None else text
        annotations = self._annotate(annotations, text)
        if annotations:
            metadata["annotations"] = annotations
        others = {key: value for key, value in obj.items() if key not in PARTS}
        return {**others, "apiVersion": api_version, "metadata": metadata, **target}

    def _annotate(self, annotations: Data, text: Any) -> Data:
        """Return the annotations with ``text``, or unchanged if they would be too large.

        Any user may fill the annotations of an object: that must not fail the lists of all other
        users.
        """
        others = {key: value for key, value in annotations.items() if key != ANNOTATION}
        found = others if text is None else {**others, ANNOTATION: text}
        if found == annotations or text is None:
            return found
        size = sum(len(str(each).encode()) for entry in found.items() for each in entry)
        if size <= MAX_ANNOTATION_BYTES:
            return found
        if self.report is not None:
            self.report(ConversionError(f"the annotations are too large for {ANNOTATION}"))
        return annotations

    def _complete(self, obj: Data, source: Data, target: Data, annotation: Any) -> tuple[Data, Any]:
        """Return ``target`` with values restored from the annotation, and its new value."""
        stored = self._stored(annotation)
        text = None if stored else annotation
        # The object was in the target's shape before: its values in that shape are restored, except
        # for fields that were changed in the meantime.
        original = stored.pop(self.kind.shape(self.target), None)
        # Data in the shape of the source are older than the source, so they are dropped.
        stored.pop(self.kind.shape(self.source), None)
        if original is not None:
            target = self._restore_original(original.data, source, target)
        kept = list(stored.values())
        lost = self._lost(source, target)
        if lost is not None:
            kept = [StoredData(str(obj["apiVersion"]), lost), *kept]
        return target, encode_stored(kept) if kept else text

    def _restore_original(self, original: Data, source: Data, target: Data) -> Data:
        """Return ``target``, converted from ``source``, with the values of ``original``.

        Values that would change the meaning are not restored.
        """
        expected = self._apply(self._revert(original))
        restored: Data = restore_value(original, expected, target)
        if is_equal(restored, target):
            return target
        reverted = self._revert(restored)
        if is_equal(reverted, source):
            return restored
        # What the target cannot express comes back different from the source, and what an author's
        # functions return may change with each conversion.
        meanings = source, self._revert(target)
        if has_values_of(reverted, *meanings):
            return restored
        # A converted value may depend on several fields, as a count of unavailable replicas does on
        # two: it may be as expected although one of them was changed.
        changed = [
            (part, name, value)
            for part in PARTS
            if isinstance(restored.get(part), dict)
            for name, value in restored[part].items()
            if not is_equal(value, target.get(part, {}).get(name, MISSING))
        ]
        result = target
        # Fields that no schema declares are never restored, so an annotation cannot have many.
        for part, name, value in changed:
            candidate = {**result, part: {**result.get(part, {}), name: value}}
            if has_values_of(self._revert(candidate), *meanings):
                result = candidate
        return result

    def _apply(self, data: Data) -> Data:
        return self._between(data, self.source, self.target)

    def _revert(self, data: Data) -> Data:
        return self._between(data, self.target, self.source)

    def _between(self, data: Data, source: str, target: str, *, is_strict: bool = False) -> Data:
        """Return ``data`` converted from one version to another.

        If ``is_strict``, the author's function may reject the data on the way to the hub.
        """
        fields, contracts, paths = self.kind.fields, self.kind.contracts, self.kind.paths
        result = data
        if source in fields or source in paths:
            result = copy_value(data)
        if source in fields:
            report = None if is_strict else self.report
            fields[source].convert(result, to_hub=True, report=report)
        if source in paths:
            result = dict(read_at_contract_paths(result, paths[source]))
        if contracts[source] != contracts[target]:
            convert = convert_forward if contracts[target] == "v1beta2" else convert_backward
            result = convert(result, self.kind.changes, self.context)
        elif result is data:
            result = copy_value(data)
        if target in paths:
            result = dict(write_at_own_paths(result, paths[target]))
        if target in fields:
            fields[target].convert(result, to_hub=False, report=self.report)
        return result

    def _stored(self, annotation: Any) -> dict[Shape, StoredData]:
        """Return the annotation's data by shape; empty if another kind or program wrote it."""
        found = {}
        for data in decode_stored(annotation):
            group, _, version = data.api_version.rpartition("/")
            if group != self.kind.group or version not in self.kind.contracts:
                return {}
            found[self.kind.shape(version)] = data
        return found

    def _lost(self, source: Data, target: Data) -> Data | None:
        """Return the fields of ``source`` that ``target`` cannot express.

        Returns None if there are none.
        """
        returned = self._revert(target)
        if is_equal(returned, source):
            return None
        # The author's functions expect all fields, not only those that were lost.
        whole = self.source in self.kind.fields or self.target in self.kind.fields
        lost = source if whole else find_lost_fields(source, returned)
        # The lost fields alone may not be enough, where the value of one field depends on another.
        for data in (lost, source):
            if is_equal(self._restore(data, returned), source):
                return data
        return source

    def _restore(self, lost: Data, returned: Data) -> Data:
        there_and_back = self._revert(self._apply(lost))
        result: Data = restore_value(lost, there_and_back, returned)
        return result
