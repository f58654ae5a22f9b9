"""Load contract data (``schemas/contracts``, ``schemas/kinds``) as a :class:`Contract`.

Every run passes here, so only what is needed is read, shapes and rules at their first use, and the
pydantic models are imported by the functions that use them.  Unknown keys and unknown files are
refused, so that no rule is lost to a typing error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, TypeVar

from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.hooks import load_hooks
from capsmith.contract.model import (
    Contract,
    ContractField,
    ContractValidation,
    Releases,
    Rule,
    SupportEnd,
    TypeShape,
)
from capsmith.contract.reading import broken, load, validate
from capsmith.contract.upgrade import Upgrade, load_upgrade

if TYPE_CHECKING:
    from capsmith.contract.files import FieldEntry, FragmentEntry

VERSIONS = ("v1beta1", "v1beta2")
COMMON = "common"
_FILES = {"contract.yaml", "fragments.yaml", "rules", "types"}

V = TypeVar("V")


def known_versions() -> tuple[str, ...]:
    """Return the contract versions that capsmith knows, the oldest first."""
    return VERSIONS


def load_contract(version: str, reader: Traversable) -> Contract:
    """Return the contract ``version`` from the schemas folder ``reader``.

    Raises ValueError for a version that is not known, UnreadableInput for broken data.
    """
    from capsmith.contract.files import ContractFile

    if version not in VERSIONS:
        raise ValueError(f"{version!r} is not one of {', '.join(VERSIONS)}")
    common, folder = reader / "contracts" / COMMON, reader / "contracts" / version
    kinds = reader / "kinds"
    _refuse_unknown_files(folder)
    file = folder / "contract.yaml"
    content = validate(ContractFile, load(file), str(file))
    if content.version != version:
        raise broken(str(file), f"is of the version {content.version}, unlike its folder")
    return Contract(
        version=version,
        label=content.label,
        rules=Lazy(lambda: load_rules(reader, version)),
        types=Shapes(
            [*_yaml_files(folder / "types"), *_own_kinds(kinds)],
            lambda: {**_fragments(common), **_fragments(kinds), **_fragments(folder)},
        ),
        releases=Releases(since=content.core.since, until=content.core.until),
        end=(
            SupportEnd(content.support_end.core, content.support_end.date)
            if content.support_end
            else None
        ),
        conditions=content.conditions,
        sources=tuple(content.sources),
        kubernetes=f"{load_compatibility(reader).kubernetes.default.series}.0",
        hooks=Lazy(lambda: load_hooks(reader)),
        upgrades=Lazy(lambda: _upgrades(reader, version)),
    )


def load_rules(reader: Traversable, version: str = "") -> dict[str, Rule]:
    """Return all rules by id, or those that hold in ``version``, in order of page and id.

    Raises UnreadableInput for broken data, and for a duplicate id.
    """
    from capsmith.contract.rules import read_rules

    rules: dict[str, Rule] = {}
    for place in (COMMON, *VERSIONS):
        folder = reader / "contracts" / place / "rules"
        allowed = VERSIONS if place == COMMON else (place,)
        for file in _yaml_files(folder):
            for rule in read_rules(load(file), file.name[: -len(".yaml")], allowed, str(file)):
                if rule.id in rules:
                    raise broken(str(file), f"duplicate rule {rule.id}")
                rules[rule.id] = rule
    chosen = (rule for rule in rules.values() if not version or version in rule.contracts)
    return {rule.id: rule for rule in sorted(chosen, key=lambda rule: order(rule.id))}


def load_upgrade_rules(reader: Traversable) -> dict[str, Rule]:
    """Return the rules on upgrades from one release of a provider to another, by id.

    Raises UnreadableInput for broken data.
    """
    return _of_releases(reader, "upgrade")


def load_live_rules(reader: Traversable) -> dict[str, Rule]:
    """Return the rules that only a running API server can answer, by id.

    Raises UnreadableInput for broken data.
    """
    return _of_releases(reader, "live")


def load_all_rules(reader: Traversable) -> dict[str, Rule]:
    """Return the rules of the contract, then those on releases, by id.

    Raises UnreadableInput for broken data.
    """
    return {**load_rules(reader), **load_upgrade_rules(reader), **load_live_rules(reader)}


def _of_releases(reader: Traversable, page: str) -> dict[str, Rule]:
    from capsmith.contract.rules import read_rules

    file = reader / "releases" / f"{page}.yaml"
    return {rule.id: rule for rule in read_rules(load(file), page, VERSIONS, str(file))}


def _upgrades(reader: Traversable, version: str) -> dict[str, Upgrade]:
    older = VERSIONS[max(VERSIONS.index(version) - 1, 0) : VERSIONS.index(version)]
    return {old: load_upgrade(reader, old, version) for old in older}


def order(rule_id: str) -> tuple[str, int]:
    """Return the sort key of a rule id: letters, then number."""
    letters, _, number = rule_id.partition("-")
    return letters, int(number)


class Lazy(Mapping[str, V]):
    """A mapping that is created at its first use."""

    def __init__(self, make: Callable[[], Mapping[str, V]]) -> None:
        self._make = make
        self._made: Mapping[str, V] | None = None

    def _all(self) -> Mapping[str, V]:
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getitem__(self, key: str) -> V:
        return self._all()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())


class Shapes(Mapping[str, TypeShape]):
    """Shapes by role, each read at its first use; files are named after roles."""

    def __init__(
        self, files: Iterable[Traversable], fragments: Callable[[], Mapping[str, FragmentEntry]]
    ) -> None:
        self._files = {file.name[: -len(".yaml")]: file for file in files}
        self._fragments = Lazy(fragments)
        self._read: dict[str, TypeShape] = {}

    def __getitem__(self, role: str) -> TypeShape:
        if role not in self._read:
            self._read[role] = _shape(self._files[role], self._fragments)
        return self._read[role]

    def __contains__(self, role: object) -> bool:
        return role in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _refuse_unknown_files(folder: Traversable) -> None:
    """Raise UnreadableInput when a contract's folder holds a file that is not read."""
    for entry in folder.iterdir():
        if entry.name not in _FILES:
            raise broken(str(entry), "is not a file of a contract")


def _yaml_files(folder: Traversable) -> list[Traversable]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    for file in files:
        if not file.name.endswith(".yaml"):
            raise broken(str(file), "is not a .yaml file")
    return files


def _own_kinds(folder: Traversable) -> list[Traversable]:
    """Return the shapes of kinds beside the contract, which are the same for all contracts."""
    return [file for file in _yaml_files(folder) if file.name != "fragments.yaml"]


def _shape(file: Traversable, fragments: Mapping[str, FragmentEntry]) -> TypeShape:
    from capsmith.contract.files import ShapeFile

    content = validate(ShapeFile, load(file), str(file))
    if file.name != f"{content.role}.yaml":
        raise broken(str(file), f"describes {content.role}")
    return TypeShape(
        role=content.role,
        scope=content.scope,
        spec=_fields(content.spec, fragments, str(file)),
        status=_fields(content.status, fragments, str(file)),
        printer_columns=tuple(content.printer_columns),
        subresources=content.subresources,
        validations=tuple(
            ContractValidation(entry.rule, entry.message, frozenset(entry.features))
            for entry in content.validations
        ),
    )


def _fields(
    entries: Mapping[str, FieldEntry], fragments: Mapping[str, FragmentEntry], file: str
) -> dict[str, ContractField]:
    return {name: _field(name, entry, fragments, file) for name, entry in entries.items()}


def _field(
    name: str, entry: FieldEntry, fragments: Mapping[str, FragmentEntry], file: str
) -> ContractField:
    rule, schema = entry.rule, entry.schema_
    if entry.fragment:
        if rule or schema is not None:
            raise broken(file, f"{name} has a fragment, so that it cannot have a rule or schema")
        if entry.fragment not in fragments:
            raise broken(
                file, f"{name} names the fragment {entry.fragment!r}, which does not exist"
            )
        fragment = fragments[entry.fragment]
        rule, schema = fragment.rule, fragment.schema_
    if not rule or schema is None:
        raise broken(file, f"{name} must have a rule and a schema, or a fragment")
    unknown = set(entry.own) - set(schema.get("properties", {}))
    if unknown:
        raise broken(file, f"{name} has no properties {', '.join(sorted(unknown))}")
    own = tuple(entry.own)
    return ContractField(name, schema, entry.required, rule, entry.feature, entry.origin, own)


def _fragments(folder: Traversable) -> dict[str, FragmentEntry]:
    from capsmith.contract.files import FragmentsFile

    file = folder / "fragments.yaml"
    return validate(FragmentsFile, load(file), str(file)).root
