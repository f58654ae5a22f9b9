"""The files that carry a rule into a generated repository.

A blueprint, or a module whose data blueprints print, carries the rules that it names; a CRD carries
the rules of the fields that it declares.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from capsmith.blueprint.plan import BlueprintEntry, load_manifest
from capsmith.blueprint.provider_filters import PROVIDER_FILTERS
from capsmith.contract.load import list_versions, load_contract
from capsmith.contract.model import TypeShape
from tests.traceability.catalogue import ROOT, RULE_ID
from tests.traceability.roots import GENERATOR, MODULES, PERMISSIONS, PROJECT

_NAMED = re.compile(rf"\b{RULE_ID}\b")
_KIT = "tests/"
_ROLES = {
    "manager": "role.yaml",
    "aggregate": "aggregate_to_manager_role.yaml",
    "namespace": "namespace_role.yaml",
}


@dataclass(frozen=True, order=True)
class Carrier:
    """A file that names a rule, and the generated files."""

    source: str
    targets: tuple[str, ...]
    """Paths in a generated repository, with the manifest's tokens; empty: it only decides."""
    field: str = ""
    """Of a CRD: ``status.initialization``."""


def blueprints(root: Path = ROOT) -> tuple[BlueprintEntry, ...]:
    """Return the rows of the manifest."""
    file = root / "blueprints" / "manifest.yaml"
    return load_manifest(file.read_text(encoding="utf-8"), str(file))


def carriers(root: Path = ROOT) -> dict[str, list[Carrier]]:
    """Return the carriers of each rule by rule id, in the order of sources."""
    targets = _targets(root)
    found: dict[str, set[Carrier]] = defaultdict(set)
    for source, of_source in targets.items():
        kept = tuple(target for target in of_source if not target.startswith(_KIT))
        for rule in _named(root / source) if kept else ():
            found[rule].add(Carrier(source, kept))
    for carrier, text in _modules(root, targets):
        for rule in _NAMED.findall(text):
            found[rule].add(carrier)
    for rule, carrier in (*_fields(root, targets), *_permissions(root)):
        found[rule].add(carrier)
    return {rule: sorted(of_rule) for rule, of_rule in found.items()}


def _named(file: Path) -> list[str]:
    return _NAMED.findall(file.read_text(encoding="utf-8"))


def _targets(root: Path) -> dict[str, list[str]]:
    """Blueprint -> what it becomes."""
    targets: dict[str, list[str]] = {}
    for entry in blueprints(root):
        targets.setdefault(f"{PROJECT}{entry.source}", []).append(entry.target)
    return targets


def _modules(root: Path, targets: dict[str, list[str]]) -> Iterator[tuple[Carrier, str]]:
    """Yield each module as a carrier, with its text."""
    for source_root in MODULES:
        for file in source_root.files(root):
            source = file.relative_to(root).as_posix()
            printer = source_root.printed_by or source
            results = source_root.copies(source) or _printed(printer, root, targets)
            yield Carrier(source, results), file.read_text(encoding="utf-8")


def _printed(module: str, root: Path, targets: dict[str, list[str]]) -> tuple[str, ...]:
    """The files that are printed from a module's data: blueprints with a filter out of it.

    A function of a package speaks for those of its modules that have one called like it, and for
    modules that have none such and help the others.
    """
    dotted = module.removeprefix(GENERATOR).removesuffix(".py").replace("/", ".")
    text = (root / module).read_text(encoding="utf-8")
    near = {
        name: function
        for name, function in PROVIDER_FILTERS.items()
        if f"{dotted}.".startswith(f"{function.__module__}.")
        # A filter that answers yes or no prints nothing.
        and function.__annotations__.get("return") != "bool"
    }
    own = [name for name, function in near.items() if f"def {function.__name__}(" in text]
    names = "|".join(re.escape(name) for name in own or near)
    if not names:
        return ()
    used = re.compile(rf"\|\s*(?:{names})\b")
    return tuple(
        target
        for source, of_source in targets.items()
        if used.search((root / source).read_text(encoding="utf-8"))
        for target in of_source
        if not target.startswith(_KIT)
    )


def _fields(root: Path, targets: dict[str, list[str]]) -> Iterator[tuple[str, Carrier]]:
    """The fields that the contract's shapes declare, each with its rule."""
    crd = _printed("generator/capsmith/output/crd.py", root, targets)
    for version in list_versions():
        for role, shape in load_contract(version, root / "schemas").types.items():
            source = _shape_file(root, version, role)
            for path, rule in _of_shape(shape):
                yield rule, Carrier(source, crd[:1], f"{role} {path}")


def _permissions(root: Path) -> Iterator[tuple[str, Carrier]]:
    """Yield the rules of the declared permissions, with the role that carries each of them."""
    for file in PERMISSIONS.files(root):
        source = file.relative_to(root).as_posix()
        for role, declared in yaml.safe_load(file.read_text(encoding="utf-8")).items():
            carrier = Carrier(source, (f"{{config}}/rbac/{_ROLES[role]}",))
            for permission in declared:
                yield from ((rule, carrier) for rule in permission.get("rules", ()))


def _of_shape(shape: TypeShape) -> Iterator[tuple[str, str]]:
    for part, fields in (("spec", shape.spec), ("status", shape.status)):
        for field in fields.values():
            yield f"{part}.{field.name}", field.rule


def _shape_file(root: Path, version: str, role: str) -> str:
    files = [f"schemas/{folder}/{role}.yaml" for folder in (f"contracts/{version}/types", "kinds")]
    return next(file for file in files if (root / file).exists())
