"""Load contract data from ``contracts``, ``kinds``, ``releases`` and ``upgrades`` in ``schemas``.

The file models are imported inside functions, because building them takes pydantic longer than most
commands run, and many commands read only part of the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, Any, TypeVar

from capsmith.contract.compatibility import Compatibility, load_compatibility, release_order
from capsmith.contract.core_kinds import load_core_kinds, load_kubernetes_kinds
from capsmith.contract.model import (
    Check,
    Contract,
    ContractField,
    ContractValidation,
    Effect,
    EffectClass,
    HookDefinition,
    Keyword,
    Level,
    Origin,
    Releases,
    Rule,
    SupportEnd,
    TestedReleases,
    TypeShape,
    Upgrade,
)
from capsmith.contract.reading import load, make_error, validate
from capsmith.contract.references import load_references
from capsmith.contract.upgrades import load_upgrade

if TYPE_CHECKING:
    from capsmith.contract.files import EffectEntry, FieldEntry, FragmentEntry, RuleEntry

_ID = re.compile(r"[A-Z]{2,3}-[0-9]{2}")

_CONTRACT_PAGE = re.compile(
    r"https://([a-z0-9-]+\.)?cluster-api\.sigs\.k8s\.io/"
    r"(developer/providers/contracts/|tasks/experimental-features/runtime-sdk/(implement|deploy)-)"
)
VERSIONS = ("v1beta1", "v1beta2")
COMMON = "common"
_FILES = {"contract.yaml", "fragments.yaml", "rules", "types"}

V = TypeVar("V")


def list_versions() -> tuple[str, ...]:
    """Return the supported contract versions, oldest first."""
    return VERSIONS


def load_contracts(reader: Traversable) -> tuple[Contract, ...]:
    """Load all contract versions, oldest first, from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data, either here or when a lazy part is first used.
    """
    # All contracts get their rules from the same files, so these are read only once.
    rules = Lazy(lambda: load_rules(reader))
    return tuple(_load_contract(version, reader, rules) for version in VERSIONS)


def load_lazy_parts(contract: Contract) -> Contract:
    """Return a copy of a contract with all its parts loaded, so that it can be pickled.

    Raises UnreadableInput for invalid data.
    """
    return replace(
        contract,
        rules=dict(contract.rules),
        types=dict(contract.types),
        hooks=dict(contract.hooks),
        upgrades=dict(contract.upgrades),
        core_kinds=dict(contract.core_kinds),
        kubernetes_kinds=dict(contract.kubernetes_kinds),
    )


def load_contract(version: str, reader: Traversable) -> Contract:
    """Load the contract version ``version`` from the schemas folder ``reader``.

    Raises ValueError for an unsupported version and UnreadableInput for invalid data.
    """
    return _load_contract(version, reader, Lazy(lambda: load_rules(reader)))


def _load_contract(version: str, reader: Traversable, rules: Mapping[str, Rule]) -> Contract:
    from capsmith.contract.files import ContractFile

    if version not in VERSIONS:
        raise ValueError(f"{version!r} is not one of {', '.join(VERSIONS)}")
    common, folder = reader / "contracts" / COMMON, reader / "contracts" / version
    kinds = reader / "kinds"
    compatibility = load_compatibility(reader)
    _refuse_unknown_files(folder)
    file = folder / "contract.yaml"
    content = validate(ContractFile, load(file), str(file))
    if content.version != version:
        raise make_error(str(file), f"is of the version {content.version}, unlike its folder")
    announced = content.support_end
    end = SupportEnd(announced.core, announced.date) if announced is not None else None
    return Contract(
        version=version,
        label=content.label,
        # Lazy, because most commands read the shapes of some roles and no rules, and a valid
        # description has no findings for rules to explain.
        rules=Lazy(lambda: {id: rule for id, rule in rules.items() if version in rule.contracts}),
        types=Shapes(
            [*_yaml_files(folder / "types"), *_own_kinds(kinds)],
            lambda: {**_fragments(common), **_fragments(kinds), **_fragments(folder)},
        ),
        releases=Releases(since=content.core.since, until=content.core.until),
        end=end,
        conditions=content.conditions,
        sources=tuple(content.sources),
        kubernetes=f"{compatibility.kubernetes.default.series}.0",
        core_release=compatibility.core.default.release,
        tested=_tested(compatibility, content.core.since, end),
        hooks=Lazy(lambda: load_hooks(reader)),
        upgrades=Lazy(lambda: _upgrades(reader, version)),
        core_kinds=Lazy(lambda: load_core_kinds(reader)),
        kubernetes_kinds=Lazy(lambda: load_kubernetes_kinds(reader)),
        references=load_references(reader),
    )


def _tested(compatibility: Compatibility, since: str, end: SupportEnd | None) -> TestedReleases:
    first = release_order(since)
    core = [each.series for each in compatibility.core.executed if each.order >= first]
    if end is not None:
        core = [series for series in core if release_order(series) < release_order(end.core)]
    kubernetes = tuple(each.series for each in compatibility.kubernetes.executed)
    return TestedReleases(tuple(core), kubernetes)


def load_rules(reader: Traversable, version: str = "") -> dict[str, Rule]:
    """Load the contract's rules by id, sorted by id.

    If ``version`` is given, load only the rules of that contract version.  Raises UnreadableInput
    for invalid data, including duplicate ids.
    """
    rules: dict[str, Rule] = {}
    # Ids must be unique across all versions, so all rules are read even if only one version is
    # requested.
    for place in (COMMON, *VERSIONS):
        folder = reader / "contracts" / place / "rules"
        allowed = VERSIONS if place == COMMON else (place,)
        for file in _yaml_files(folder):
            for rule in read_rules(load(file), file.name[: -len(".yaml")], allowed, str(file)):
                if rule.id in rules:
                    raise make_error(str(file), f"duplicate rule {rule.id}")
                rules[rule.id] = rule
    chosen = (rule for rule in rules.values() if not version or version in rule.contracts)
    return {rule.id: rule for rule in sorted(chosen, key=lambda rule: get_sort_key(rule.id))}


def load_upgrade_rules(reader: Traversable) -> dict[str, Rule]:
    """Load the rules about upgrades from one of a provider's releases to the next, by id.

    Raises UnreadableInput for invalid data.
    """
    return _of_releases(reader, "upgrade")


def load_live_rules(reader: Traversable) -> dict[str, Rule]:
    """Load the rules that only a running API server can verify, by id.

    Raises UnreadableInput for invalid data.
    """
    return _of_releases(reader, "live")


def load_all_rules(reader: Traversable) -> dict[str, Rule]:
    """Load all rules by id: the contract's rules, followed by the rules about releases.

    Raises UnreadableInput for invalid data.
    """
    return {**load_rules(reader), **load_upgrade_rules(reader), **load_live_rules(reader)}


def read_rules(data: Any, page: str, allowed: tuple[str, ...], file: str) -> Iterator[Rule]:
    """Yield the rules on ``page``, each limited to the contract versions in ``allowed``.

    ``data`` is the parsed content of ``file``.  Raises UnreadableInput for invalid data.
    """
    from capsmith.contract.files import RulesFile  # builds pydantic models

    content = validate(RulesFile, data, file)
    for entry in content.rules:
        rule = _rule(entry, page, allowed, content.source)
        _require_coherence(rule, allowed, file)
        yield rule


def _rule(entry: RuleEntry, page: str, allowed: tuple[str, ...], base: str) -> Rule:
    return Rule(
        id=entry.id,
        title=entry.title,
        level=entry.level,
        origin=entry.origin,
        statement=entry.statement,
        contracts=allowed if entry.contracts is None else tuple(entry.contracts),
        applies_to=tuple(entry.applies_to),
        check=Check(entry.check.name, entry.check.params) if entry.check else None,
        proof=entry.proof,
        source=_source(entry.source, base),
        consequence=entry.consequence,
        hint=entry.hint,
        page=page,
        row=entry.row,
        condition=entry.condition,
        core=Releases(entry.core.since, entry.core.deprecated, entry.core.until),
        severity=entry.severity,
        effect=_effect(entry.effect),
    )


def _effect(entry: EffectEntry | None) -> Effect:
    if entry is None:
        return Effect(EffectClass.ADVICE)
    return Effect(entry.class_, entry.when, tuple(entry.roles))


def _require_coherence(rule: Rule, allowed: tuple[str, ...], file: str) -> None:
    if not _ID.fullmatch(rule.id):
        raise make_error(file, f"{rule.id!r} is not an id such as AB-01")
    if not set(rule.contracts) <= set(allowed) or not rule.contracts:
        raise make_error(file, f"{rule.id} is in a folder for {', '.join(allowed)}")
    if rule.check is not None and rule.proof is not None:
        raise make_error(file, f"{rule.id} has both a check and a proof")
    if bool(rule.effect.when) != (rule.effect.kind is EffectClass.BREAKS_WHEN):
        raise make_error(file, f"{rule.id} has a condition without the class breaks-when, or none")
    if not set(rule.effect.roles) <= set(rule.applies_to):
        raise make_error(file, f"{rule.id} has an effect on roles that it does not apply to")
    if rule.check is None and rule.proof is None and rule.level is not Level.INFO:
        raise make_error(file, f"{rule.id} has neither a check nor a proof")
    # The origin determines the wording of a violation, so it must not contradict the link next to
    # it.
    if (rule.origin is Origin.CONTRACT) != (_CONTRACT_PAGE.match(rule.source) is not None):
        raise make_error(
            file, f"{rule.id} has origin {rule.origin}, unlike its source {rule.source}"
        )


def _source(own: str, base: str) -> str:
    """Return the URL of a rule's source; ``own`` may be an anchor on the page ``base``."""
    return own if own.startswith("https://") else base + own


def _of_releases(reader: Traversable, page: str) -> dict[str, Rule]:
    file = reader / "releases" / f"{page}.yaml"
    return {rule.id: rule for rule in read_rules(load(file), page, VERSIONS, str(file))}


def _upgrades(reader: Traversable, version: str) -> dict[str, Upgrade]:
    # Only the previous version: an upgrade goes through one contract after the other.
    older = VERSIONS[max(VERSIONS.index(version) - 1, 0) : VERSIONS.index(version)]
    return {old: load_upgrade(reader, old, version) for old in older}


def get_sort_key(rule_id: str) -> tuple[str, int]:
    """Return a sort key for rule ids that puts ``IC-9`` before ``IC-10``."""
    letters, _, number = rule_id.partition("-")
    return letters, int(number)


class Lazy(Mapping[str, V]):
    """A read-only mapping that loads its content when it is first used."""

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
    """Each role's type shape. A role's file is read when its shape is first used."""

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
    """Raise UnreadableInput if a contract's folder contains an unexpected file."""
    for entry in folder.iterdir():
        if entry.name not in _FILES:
            # Otherwise a misspelt file name would silently be ignored.
            raise make_error(str(entry), "is not a file of a contract")


def _yaml_files(folder: Traversable) -> list[Traversable]:
    files = sorted(folder.iterdir(), key=lambda file: file.name)
    for file in files:
        if not file.name.endswith(".yaml"):
            raise make_error(str(file), "is not a .yaml file")
    return files


def _own_kinds(folder: Traversable) -> list[Traversable]:
    """Return the files of kinds that no contract defines, such as identities and IP pools."""
    return [file for file in _yaml_files(folder) if file.name != "fragments.yaml"]


def _shape(file: Traversable, fragments: Mapping[str, FragmentEntry]) -> TypeShape:
    from capsmith.contract.files import ShapeFile

    content = validate(ShapeFile, load(file), str(file))
    if file.name != f"{content.role}.yaml":
        raise make_error(str(file), f"describes {content.role}")
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
            raise make_error(
                file, f"{name} has a fragment, so that it cannot have a rule or schema"
            )
        if entry.fragment not in fragments:
            raise make_error(
                file, f"{name} names the fragment {entry.fragment!r}, which does not exist"
            )
        fragment = fragments[entry.fragment]
        rule, schema = fragment.rule, fragment.schema_
    if not rule or schema is None:
        raise make_error(file, f"{name} must have a rule and a schema, or a fragment")
    unknown = set(entry.own) - set(schema.get("properties", {}))
    if unknown:
        raise make_error(file, f"{name} has no properties {', '.join(sorted(unknown))}")
    for path in entry.movable:
        if not _has_property(schema, path):
            raise make_error(file, f"{name} has no property {path}, which is movable")
    own, movable = tuple(entry.own), tuple(entry.movable)
    return ContractField(
        name, schema, entry.required, rule, entry.feature, entry.origin, own, movable
    )


def _has_property(schema: Any, path: str) -> bool:
    for step in path.split("."):
        schema = schema.get("properties", {}).get(step)
        if schema is None:
            return False
    return True


def _fragments(folder: Traversable) -> dict[str, FragmentEntry]:
    from capsmith.contract.files import FragmentsFile

    file = folder / "fragments.yaml"
    return validate(FragmentsFile, load(file), str(file)).root


def load_hooks(reader: Traversable) -> dict[str, HookDefinition]:
    """Load all runtime hooks by name from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data.
    """
    from capsmith.contract.files import HooksFile  # builds pydantic models

    file = reader / "contracts" / "common" / "hooks.yaml"
    content = validate(HooksFile, load(file), str(file))
    hooks: dict[str, HookDefinition] = {}
    for entry in content.hooks:
        if entry.hook in hooks:
            raise make_error(str(file), f"duplicate hook {entry.hook}")
        hooks[entry.hook] = HookDefinition(entry.hook, entry.family, entry.statement, entry.since)
    return hooks


def load_keywords(reader: Traversable) -> Mapping[str, Keyword]:
    """Load the structural schema keywords, and the effects of changing them, in file order.

    ``reader`` is the schemas folder.  Raises UnreadableInput for invalid data.
    """
    from capsmith.contract.files import KeywordsFile  # builds pydantic models

    file = reader / "releases" / "keywords.yaml"
    return {
        entry.keyword: Keyword(
            entry.keyword, entry.compare, entry.narrowed, entry.widened, entry.limit, entry.reason
        )
        for entry in validate(KeywordsFile, load(file), str(file)).keywords
    }
