"""Contract data (``schemas/contracts``) -> :class:`Contract`.

On the path of every run, so only what is needed is read: shapes and rules when first asked for.
Unknown keys and unknown files are refused, so that no rule is lost to a slip of the pen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from capsmith.contract.hooks import load_hooks
from capsmith.contract.model import Contract, ContractField, Rule, TypeShape
from capsmith.contract.reading import Entry, broken, parse
from capsmith.contract.rules import read_rules
from capsmith.contract.upgrade import Upgrade, load_upgrade

VERSIONS = ("v1beta1", "v1beta2")
COMMON = "common"
_FILES = {"contract.yaml", "fragments.yaml", "rules", "types"}

V = TypeVar("V")


def known_versions() -> tuple[str, ...]:
    """The contract versions that capsmith knows, the oldest first."""
    return VERSIONS


def load_contract(version: str, reader: Traversable) -> Contract:
    """The contract ``version`` out of the schemas folder ``reader``.

    Raises ValueError for a version that is not known, UnreadableInput for broken data.
    """
    if version not in VERSIONS:
        raise ValueError(f"{version!r} is none of {', '.join(VERSIONS)}")
    common, folder = reader / "contracts" / COMMON, reader / "contracts" / version
    refuse_strangers(folder)
    entry = Entry(_data(folder / "contract.yaml"), _label(folder / "contract.yaml"))
    if entry.take("version", str) != version:
        raise entry.error("is of another version than its folder")
    contract = Contract(
        version=version,
        label=entry.take("label", str),
        rules=Lazy(lambda: load_rules(reader, version)),
        types=Shapes((common, folder), lambda: {**_fragments(common), **_fragments(folder)}),
        core=entry.take("core", str),
        support_end=entry.take("supportEnd", str),
        conditions=entry.take("conditions", dict),
        sources=entry.texts("sources"),
        hooks=Lazy(lambda: load_hooks(reader)),
        upgrades=Lazy(lambda: _upgrades(reader, version)),
    )
    entry.close()
    return contract


def load_rules(reader: Traversable, version: str = "") -> dict[str, Rule]:
    """All rules by id, or those that hold in ``version``; in order of page and id.

    Raises UnreadableInput for broken data, and when an id stands twice.
    """
    rules: dict[str, Rule] = {}
    for place in (COMMON, *VERSIONS):
        folder = reader / "contracts" / place / "rules"
        allowed = VERSIONS if place == COMMON else (place,)
        for file in _yaml_files(folder):
            for rule in read_rules(_data(file), file.name[: -len(".yaml")], allowed, _label(file)):
                if rule.id in rules:
                    raise broken(_label(file), f"{rule.id} is there twice")
                rules[rule.id] = rule
    chosen = (rule for rule in rules.values() if not version or version in rule.contracts)
    return {rule.id: rule for rule in sorted(chosen, key=lambda rule: order(rule.id))}


def _upgrades(reader: Traversable, version: str) -> dict[str, Upgrade]:
    older = VERSIONS[max(VERSIONS.index(version) - 1, 0) : VERSIONS.index(version)]
    return {old: load_upgrade(reader, old, version) for old in older}


def order(rule_id: str) -> tuple[str, int]:
    """Sort key of a rule id: letters, then number."""
    letters, _, number = rule_id.partition("-")
    return letters, int(number)


class Lazy(Mapping[str, V]):
    """A mapping that is made when it is first looked at."""

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
    """Shapes by role, each read when it is first asked for; files are called after roles."""

    def __init__(
        self, folders: Iterable[Traversable], fragments: Callable[[], Mapping[str, Any]]
    ) -> None:
        files = [file for folder in folders for file in _yaml_files(folder / "types")]
        self._files = {file.name[: -len(".yaml")]: file for file in files}
        self._fragments = Lazy(fragments)
        self._read: dict[str, TypeShape] = {}

    def __getitem__(self, role: str) -> TypeShape:
        if role not in self._read:
            file = self._files[role]
            self._read[role] = _shape(Entry(_data(file), _label(file)), self._fragments, file.name)
        return self._read[role]

    def __contains__(self, role: object) -> bool:
        return role in self._files

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def refuse_strangers(folder: Traversable) -> None:
    """Raises UnreadableInput when a contract's folder holds a file that nobody reads."""
    for entry in folder.iterdir():
        if entry.name not in _FILES:
            raise broken(_label(entry), "is no file of a contract")


def _yaml_files(folder: Traversable) -> list[Traversable]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    for file in files:
        if not file.name.endswith(".yaml"):
            raise broken(_label(file), "is no .yaml file")
    return files


def _shape(entry: Entry, fragments: Mapping[str, Any], file_name: str) -> TypeShape:
    role = entry.take("role", str)
    if file_name != f"{role}.yaml":
        raise entry.error(f"describes {role}")
    shape = TypeShape(
        role=role,
        scope=entry.take("scope", str),
        spec=_fields(entry.take("spec", dict), fragments, entry.file),
        status=_fields(entry.take("status", dict), fragments, entry.file),
        printer_columns=tuple(entry.take("printerColumns", list)),
        subresources=entry.take("subresources", dict),
    )
    entry.close()
    return shape


def _fields(
    data: Mapping[str, Any], fragments: Mapping[str, Any], file: str
) -> dict[str, ContractField]:
    return {name: _field(name, Entry(value, file, name), fragments) for name, value in data.items()}


def _field(name: str, entry: Entry, fragments: Mapping[str, Any]) -> ContractField:
    if entry.has("fragment"):
        fragment = entry.take("fragment", str)
        if fragment not in fragments:
            raise entry.error(f"names the fragment {fragment!r}, which is not there")
        part = Entry(fragments[fragment], entry.file, fragment)
        schema, rule = part.take("schema", dict), part.take("rule", str)
        part.close()
    else:
        schema, rule = entry.take("schema", dict), entry.take("rule", str)
    field = ContractField(
        name=name,
        schema=schema,
        required=entry.take("required", bool, False),
        rule=rule,
        feature=entry.take("feature", str, ""),
    )
    entry.close()
    return field


def _fragments(folder: Traversable) -> dict[str, Any]:
    file = folder / "fragments.yaml"
    data = _data(file)
    if not isinstance(data, dict):
        raise broken(_label(file), "is not a mapping")
    return data


def _data(file: Traversable) -> Any:
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise broken(_label(file), f"cannot be read: {error.strerror}") from error
    return parse(text, _label(file))


def _label(file: Traversable) -> str:
    return str(file)
