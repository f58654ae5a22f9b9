"""A mutant: what is changed in a release, and the release with the change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from capsmith.judge.checks.registry import Context
from capsmith.judge.release.release import ReleaseFiles
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import Manifest, parse_manifests
from capsmith.yamldoc.compose import Path

Document = dict[str, Any]
Scalar = {"type": "string"}


class Mutant(NamedTuple):
    """One change of a release."""

    text: str
    """What is broken, for people."""
    replaced: Mapping[int, tuple[Document, ...]]
    """By the id of a manifest: what is there instead."""
    renamed: Mapping[str, str] = {}
    """New names of files."""
    rewritten: Mapping[str, str] = {}
    """New texts of files."""

    def of(self, release: ReleaseFiles) -> ReleaseFiles:
        """Return the release with the change."""
        manifests: list[Manifest] = []
        for manifest in release.manifests:
            if manifest.file in self.rewritten:
                continue
            file = self.renamed.get(manifest.file, manifest.file)
            for document in self.replaced.get(id(manifest), (manifest.document,)):
                manifests.append(replace(manifest, file=file, document=document))
        for file, text in self.rewritten.items():
            found, wrong = parse_manifests(text, file)
            assert not wrong, (self.text, wrong)
            manifests += found
        return ReleaseFiles(tuple(manifests))


class Site(NamedTuple):
    """The place that an operator may change: a bundle, as the rule sees it."""

    context: Context
    params: Any

    @property
    def bundle(self) -> Bundle:
        return self.context.bundle


Operator = Callable[[Site], Iterator[Mutant]]
OPERATORS: dict[str, Operator] = {}
"""By the name of the check."""


def operator(*checks: str) -> Callable[[Operator], Operator]:
    """Register an operator for checks."""

    def register(function: Operator) -> Operator:
        for name in checks:
            assert name not in OPERATORS, name
            OPERATORS[name] = function
        return function

    return register


def edited(manifest: Manifest, text: str, edit: Callable[[Document], object]) -> Mutant:
    """Return the mutant in which ``edit`` has changed a copy of one object."""
    document: Document = copy.deepcopy(dict(manifest.document))
    edit(document)
    return Mutant(f"{manifest.kind} {manifest.name}: {text}", {id(manifest): (document,)})


def together(text: str, *mutants: Mutant) -> Mutant:
    """Return the mutant with the changes of several."""
    replaced: dict[int, tuple[Document, ...]] = {}
    for mutant in mutants:
        replaced.update(mutant.replaced)
    return Mutant(text, replaced)


def removed(*manifests: Manifest) -> Mutant:
    """Return the mutant without some objects."""
    names = ", ".join(f"{m.kind} {m.name}" for m in manifests)
    return Mutant(f"{names}: removed", {id(m): () for m in manifests})


def added(beside: Manifest, document: Document) -> Mutant:
    """Return the mutant with one object more in the file of another."""
    name = document.get("metadata", {}).get("name", "")
    text = f"{document['kind']} {name}: added"
    return Mutant(text, {id(beside): (dict(beside.document), document)})


def put(path: Path, value: Any) -> Callable[[Document], None]:
    """Return the edit that sets the value at ``path``; missing mappings are made."""

    def edit(document: Document) -> None:
        current: Any = document
        for step in path[:-1]:
            current = current[step] if isinstance(step, int) else current.setdefault(step, {})
        current[path[-1]] = value

    return edit


def drop(path: Path) -> Callable[[Document], None]:
    """Return the edit that removes what is at ``path``."""

    def edit(document: Document) -> None:
        current: Any = document
        for step in path[:-1]:
            current = current[step]
        del current[path[-1]]

    return edit


def declare(crd: Crd, version: str, field: str, schema: Any) -> Mutant:
    """Return the mutant in which a field has another schema, or is declared at all."""
    path = crd.schema_path(version, field)

    def edit(document: Document) -> None:
        for length in range(1, len(path)):
            # A parent that is not there yet is an object.
            if path[length] == "properties":
                put((*path[:length], "type"), "object")(document)
        put(path, copy.deepcopy(schema))(document)

    return edited(crd.manifest, f"{version} {field} is {_shown(schema)}", edit)


def undeclare(crd: Crd, version: str, *fields: str) -> Mutant:
    """Return the mutant in which fields are neither declared nor required."""

    def edit(document: Document) -> None:
        for field in fields:
            path = crd.schema_path(version, field)
            drop(path)(document)
            holder = at(document, path[:-2])
            holder["required"] = [n for n in holder.get("required", []) if n != path[-1]]
            # An open parent would keep the field.
            for length in range(len(path)):
                part = at(document, path[:length])
                if isinstance(part, dict):
                    part.pop("x-kubernetes-preserve-unknown-fields", None)

    return edited(crd.manifest, f"{version} has no {', '.join(fields)}", edit)


def at(document: Any, path: Path) -> Any:
    """Return what is at ``path``."""
    for step in path:
        document = document[step]
    return document


def version_path(crd: Crd, version: str) -> Path:
    """Return the path of a version in its CRD."""
    return crd.schema_path(version)[:3]


def with_version(
    crd: Crd, edit: Callable[[Document, Document], None], name: str = "v1alpha0"
) -> Mutant:
    """Return the mutant with one served version more, a copy of the stored one, and no conversion.

    ``edit`` gets the stored and the new version.
    """

    def both(document: Document) -> None:
        versions = document["spec"]["versions"]
        stored = next(version for version in versions if version.get("storage"))
        copied = {**copy.deepcopy(stored), "name": name, "storage": False, "served": True}
        versions.append(copied)
        document["spec"].pop("conversion", None)
        edit(stored, copied)

    return edited(crd.manifest, f"version {name} besides", both)


def _shown(schema: Any) -> str:
    kind = schema.get("type", "a field") if isinstance(schema, dict) else "another"
    return f"a {kind}"
