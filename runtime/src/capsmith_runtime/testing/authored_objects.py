"""Checks the objects in the author's samples and templates against the provider's CRDs.

A repository's release tool also uses this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from capsmith_runtime.testing.go_yaml import read_documents
from capsmith_runtime.testing.schema_check import complaints
from capsmith_runtime.testing.value_check import value_complaints

Crds = Mapping[tuple[str, str], Mapping[str, Any]]
"""CRD versions by name, for each of the provider's kinds by group and kind."""

_WITH_DEFAULT = re.compile(r"\$\{[A-Za-z_]\w*:?[=-]([^}]*)\}")


def problems(repository: Path, folders: Iterable[str], crds: Iterable[Any]) -> Iterator[str]:
    """Yield each problem that an API server would report, as ``file:line: message``.

    ``folders`` are the folders that contain samples and templates, relative to ``repository``.
    clusterctl variables have their default values; a variable without a default may have any value.
    """
    versions = _versions(crds)
    for folder in folders:
        for file in sorted((repository / folder).rglob("*.yaml")):
            text = _WITH_DEFAULT.sub(r"\1", file.read_text(encoding="utf-8"))
            name = file.relative_to(repository).as_posix()
            try:
                for line, document in read_documents(text):
                    for problem in _object_problems(document, versions):
                        yield f"{name}:{line}: {problem}"
            except yaml.YAMLError as error:
                yield f"{name}: this is not YAML: {error}"


def authored_objects(repository: Path, folders: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects in samples and templates, with variables replaced by their defaults.

    Raises yaml.YAMLError for a file that is not valid YAML.
    """
    for folder in folders:
        for file in sorted((repository / folder).rglob("*.yaml")):
            text = _WITH_DEFAULT.sub(r"\1", file.read_text(encoding="utf-8"))
            yield from (each for _, each in read_documents(text) if isinstance(each, dict))


def _versions(crds: Iterable[Any]) -> Crds:
    return {
        (crd["spec"].get("group", ""), crd["spec"]["names"]["kind"]): {
            version["name"]: version for version in crd["spec"].get("versions", ())
        }
        for crd in crds
    }


def _object_problems(document: Any, versions: Crds) -> Iterator[str]:
    for reference in _references(document):
        yield from _reference_problems(reference, versions)
    version = _version(document, versions) if isinstance(document, dict) else None
    if version is not None:
        schema = version["schema"]["openAPIV3Schema"].get("properties", {}).get("spec", {})
        spec, path = document.get("spec") or {}, f"{document['kind']}.spec"
        yield from complaints(schema, spec, path)
        yield from value_complaints(schema, spec, path)


def _references(value: Any) -> Iterator[dict[str, Any]]:
    """Yield an object, and all references to objects in it."""
    if isinstance(value, dict):
        if isinstance(value.get("apiVersion"), str) and isinstance(value.get("kind"), str):
            yield value
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _reference_problems(reference: dict[str, Any], versions: Crds) -> Iterator[str]:
    group, _, name = reference["apiVersion"].rpartition("/")
    kind = reference["kind"]
    if group not in {each for each, _ in versions}:
        return
    if (group, kind) not in versions:
        yield f"{kind} is not a kind of this provider"
    elif not versions[group, kind].get(name, {}).get("served"):
        yield f"{kind} is not served in {name}"


def _version(document: dict[str, Any], versions: Crds) -> Mapping[str, Any] | None:
    """Return the CRD version of an object, or None if the object is not of the provider's kinds."""
    group, _, name = str(document.get("apiVersion", "")).rpartition("/")
    version = versions.get((group, str(document.get("kind"))), {}).get(name)
    return version if version is not None and version["served"] else None
