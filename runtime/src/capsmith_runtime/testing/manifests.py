"""A repository's manifests: CRDs from its crd folders, and valid specs from its samples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from capsmith_runtime.testing.go_yaml import read_documents

CONTRACT_LABELS = ("cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2")


@runtime_checkable
class ConvertsObjects(Protocol):
    """Protocol for a group of controllers that converts objects between API versions."""

    def converted(self, obj: dict[str, Any], api_version: str) -> dict[str, Any] | None:
        """Return the object in another version, or None if the group does not convert its kind."""
        ...


class Manifests:
    """The YAML files in a repository's manifest folders."""

    def __init__(self, folders: Sequence[Path], groups: Iterable[object] = ()) -> None:
        self._folders = tuple(folders)
        self._converters = [group for group in groups if isinstance(group, ConvertsObjects)]
        self._documents: dict[str, tuple[dict[str, Any], ...]] = {}

    def documents(self, folder: str) -> tuple[dict[str, Any], ...]:
        """Return all objects in the YAML files of ``folder`` below each manifest folder."""
        if folder not in self._documents:
            found = (each for parent in self._folders for each in _documents(parent / folder))
            self._documents[folder] = tuple(found)
        return self._documents[folder]

    def crds(self) -> list[dict[str, Any]]:
        """Return the CRDs of all components."""
        return [
            each for each in self.documents("crd") if each["kind"] == "CustomResourceDefinition"
        ]

    def crd(self, kind: str) -> dict[str, Any]:
        """Return a kind's CRD; the test fails if there is none."""
        for document in self.crds():
            if document["spec"]["names"]["kind"] == kind:
                return document
        raise AssertionError(f"there is no CRD of {kind}")

    def schema(self, kind: str, version: str) -> dict[str, Any]:
        """Return a kind's schema in one API version."""
        for entry in self.crd(kind)["spec"]["versions"]:
            if entry["name"] == version:
                found: dict[str, Any] = entry["schema"]["openAPIV3Schema"]
                return found
        raise AssertionError(f"the CRD of {kind} has no version {version}")

    def samples(self, kind: str) -> list[dict[str, Any]]:
        """Return a kind's samples; the provider's own objects are converted to the storage version.

        Samples belong to the author, and may use an older API version.
        """
        found = [document for document in self.documents("samples") if document["kind"] == kind]
        for own in self.crds():
            if own["spec"]["names"]["kind"] == kind:
                name = next(each["name"] for each in own["spec"]["versions"] if each["storage"])
                return [self._stored(each, f"{own['spec']['group']}/{name}") for each in found]
        return found

    def sample_spec(self, kind: str) -> dict[str, Any]:
        """Return a valid spec for a kind, taken from its first sample."""
        found = self.samples(kind)
        assert found, f"no samples folder has a {kind}: the conformance tests need one"
        spec: dict[str, Any] = found[0].get("spec") or {}
        return spec

    @property
    def contract(self) -> str:
        """Return the contract version that the provider serves, from its CRDs' labels (GEN-01)."""
        labels = [label for each in self.crds() for label in each["metadata"].get("labels", ())]
        return str(max(key.rpartition("/")[2] for key in labels if key in CONTRACT_LABELS))

    def _stored(self, sample: dict[str, Any], api_version: str) -> dict[str, Any]:
        for converter in self._converters:
            converted = converter.converted(sample, api_version)
            if converted is not None:
                return converted
        # All versions of the kind have the same fields, or the version is no longer served.
        return {**sample, "apiVersion": api_version}


def _documents(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.rglob("*.yaml")):
        for _, document in read_documents(file.read_text(encoding="utf-8")):
            if document and "kind" in document:
                yield document
