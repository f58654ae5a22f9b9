"""Conversion of whole objects between API versions, without loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capsmith_runtime.conversion import conversion_data
from capsmith_runtime.conversion.paths import Data
from capsmith_runtime.conversion.shape import Change, ConversionContext, Versions, backward, forward


class ConversionError(ValueError):
    """The object cannot be converted; the message is for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertedKind:
    """One kind whose versions have the shapes of two contracts."""

    group: str
    kind: str
    contracts: Mapping[str, str]
    """The contract whose shape each API version has."""
    changes: tuple[Change, ...]


class Converter:
    """Converts objects of some kinds."""

    def __init__(self, kinds: tuple[ConvertedKind, ...], versions: Versions) -> None:
        self._kinds = {(kind.group, kind.kind): kind for kind in kinds}
        self._versions = versions

    def convert(self, obj: Data, api_version: str) -> Data:
        """Return ``obj`` in ``api_version`` (``group/version``), without changing ``obj``.

        Raise ConversionError for kinds and versions that are not converted here.
        """
        kind = self._kind(obj, api_version)
        source = self._contract(kind, str(obj.get("apiVersion")))
        target = self._contract(kind, api_version)
        if source == target:
            return {**obj, "apiVersion": api_version}
        conversion = _ObjectConversion(kind, target == "v1beta2", self._context(obj))
        return conversion.convert(obj, api_version)

    def _kind(self, obj: Data, api_version: str) -> ConvertedKind:
        key = (api_version.rpartition("/")[0], str(obj.get("kind")))
        if key not in self._kinds:
            raise ConversionError(f"{key[1]} of {key[0]} is not converted here")
        return self._kinds[key]

    def _contract(self, kind: ConvertedKind, api_version: str) -> str:
        group, _, version = api_version.rpartition("/")
        if group != kind.group or version not in kind.contracts:
            raise ConversionError(f"{kind.kind} has no version {api_version}")
        return kind.contracts[version]

    def _context(self, obj: Data) -> ConversionContext:
        namespace = (obj.get("metadata") or {}).get("namespace") or ""
        return ConversionContext(namespace=namespace, versions=self._versions)


@dataclass(frozen=True, slots=True)
class _StoredData:
    is_v1beta2: bool
    """Whether the data have the shape of contract v1beta2."""
    data: Data


@dataclass(frozen=True, slots=True)
class _ObjectConversion:
    """Conversion of one object from one contract to the other."""

    kind: ConvertedKind
    to_v1beta2: bool
    """Whether it converts v1beta1 to v1beta2, not the reverse."""
    context: ConversionContext

    def convert(self, obj: Data, api_version: str) -> Data:
        """Return the object in ``api_version``; the annotation keeps what that cannot express."""
        metadata = copy.deepcopy(obj.get("metadata") or {})
        annotations = metadata.pop("annotations", None) or {}
        source = {part: obj[part] for part in conversion_data.PARTS if part in obj}
        target = self._apply(source)
        stored = self._stored(annotations)
        if stored is not None:
            del annotations[conversion_data.ANNOTATION]
            # Data in the shape of the source are older than the source: they are dropped.
            if stored.is_v1beta2 is self.to_v1beta2:
                expected = self._apply(self._revert(stored.data))
                target = conversion_data.restore(stored.data, expected, target)
        lost = self._lost(source, target)
        if lost is not None:
            annotations[conversion_data.ANNOTATION] = conversion_data.encode(
                lost, str(obj["apiVersion"])
            )
        if annotations:
            metadata["annotations"] = annotations
        others = {key: value for key, value in obj.items() if key not in conversion_data.PARTS}
        return {**others, "apiVersion": api_version, "metadata": metadata, **target}

    def _apply(self, data: Data) -> Data:
        return (forward if self.to_v1beta2 else backward)(data, self.kind.changes, self.context)

    def _revert(self, data: Data) -> Data:
        return (backward if self.to_v1beta2 else forward)(data, self.kind.changes, self.context)

    def _stored(self, annotations: Mapping[str, Any]) -> _StoredData | None:
        """Return the data of the annotation, or None if another kind or program wrote it."""
        annotation = conversion_data.decode(annotations.get(conversion_data.ANNOTATION))
        if annotation is None:
            return None
        stored_version, data = annotation
        group, _, version = stored_version.rpartition("/")
        contract = self.kind.contracts.get(version)
        if group != self.kind.group or contract is None:
            return None
        return _StoredData(contract == "v1beta2", data)

    def _lost(self, source: Data, target: Data) -> Data | None:
        """Return what ``target`` cannot express of ``source``; None if there is nothing."""
        returned = self._revert(target)
        if conversion_data.equal(returned, source):
            return None
        for lost in (conversion_data.lost_fields(source, returned), source):
            if conversion_data.equal(self._restore(lost, returned), source):
                return lost
        return source

    def _restore(self, lost: Data, returned: Data) -> Data:
        there_and_back = self._revert(self._apply(lost))
        result: Data = conversion_data.restore(lost, there_and_back, returned)
        return result
