"""Check that the author's schemas for contract fields accept all values that are written to
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capsmith.contract.model import Contract, ContractField, Level, Weight
from capsmith.provider.credentials import has_identity_reference
from capsmith.provider.described_kinds import FIELD, is_machine_based
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftKind
from capsmith.provider.field_paths import move_fields
from capsmith.provider_yaml.field_schemas import convert_field
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import ContractFieldsSpec, TemplateSpec

Schema = Mapping[str, Any]
_MINIMA = ("minLength", "minItems", "minProperties", "minimum")
_MAXIMA = ("maxLength", "maxItems", "maxProperties", "maximum")
_NEW = ("pattern", "format", "not", "allOf", "anyOf", "oneOf", "multipleOf")
_RULES = "x-kubernetes-validations"
_ACCEPTED = {
    "integer or string": ("integer or string", "integer", "string"),
    "number": ("number", "integer"),
}
"""Types that are also accepted where the contract has the type in the key."""
_STATUSES = ["True", "False", "Unknown"]
_INT_OR_STRING = "x-kubernetes-int-or-string"
_REPLACED = "status.allocation"
"""Field of pools instead of which the manager uses an annotation if the CRD lacks it."""


class _Mismatch(NamedTuple):
    """A value of the contract that the author's schema does not accept."""

    field: str
    """Path below the contract's field, such as ``[].reason``; empty for the field itself."""
    what: str
    is_type: bool
    """Whether the schema accepts no value at all, rather than only some values."""


def check_template_fields(
    kind: DraftKind, contracts: Iterable[Contract], template: TemplateSpec, reporter: PathReporter
) -> None:
    """Report ``contract-field-unknown`` for template fields that no contract version defines."""
    role, known = kind.spec.implements, {"metadata"}
    for contract in contracts:
        known |= {f"spec.{name}" for name in contract.types[role].spec}
        known |= {f"status.{name}" for name in contract.types[f"{role}Template"].status}
    versions = template.versions or {}
    for version, written in (("", template), *versions.items()):
        fields = written.contract_fields
        here = (reporter.at("versions", version) if version else reporter).at("contractFields")
        if fields is None:
            continue
        parts = {"spec": fields.spec, "status": fields.status}
        paths: dict[tuple[str | int, ...], str] = {
            (p, n): f"{p}.{n}" for p, named in parts.items() for n in named or ()
        }
        omitted: dict[tuple[str | int, ...], str] = {
            ("without", i): path for i, path in enumerate(fields.without or ())
        }
        for steps, path in {**paths, **omitted}.items():
            if path not in known:
                message = f"no contract defines {quote(path)} for this kind of template"
                here.add_error_at_key(
                    "contract-field-unknown", message, suggest(path, known), *steps
                )


def check_contract_fields(
    draft: Draft, kind: DraftKind, contracts: Mapping[str, Contract], reporter: PathReporter
) -> None:
    """Report the author's schemas for contract fields if core or the manager could not use them.

    Ids: ``contract-field-unknown``, ``contract-field-unwritten``, ``contract-field-type``,
    ``contract-field-limits``, ``contract-field-needed`` and ``contract-field-dropped``.
    """
    versions = kind.spec.versions or {}
    own = {name: each.contract_fields for name, each in versions.items() if each.contract_fields}
    if kind.spec.contract_fields is None and not own:
        return
    followed: dict[str, list[Contract]] = {}
    for version in kind.versions:
        if version.contract in contracts:
            origin = version.name if version.name in own else ""
            followed.setdefault(origin, []).append(contracts[version.contract])
    if kind.spec.contract_fields is not None:
        here, fields = reporter.at("contractFields"), kind.spec.contract_fields
        _Check(draft, kind, contracts, followed.get("", []), fields.paths or {}).all(fields, here)
    for name, written in own.items():
        here = reporter.at("versions", name, "contractFields")
        paths = written.paths or {}
        _Check(draft, kind, contracts, followed.get(name, []), paths, True).all(written, here)


class _Check(NamedTuple):
    """Checks the fields of a kind in the API versions that follow certain contracts."""

    draft: Draft
    kind: DraftKind
    contracts: Mapping[str, Contract]
    followed: list[Contract]
    paths: Mapping[str, str]
    """Paths of fields in the CRD, by their paths in the contract."""
    is_spoke: bool = False
    """Whether core reads another version, so that these fields belong to a converted object."""

    def all(self, written: ContractFieldsSpec, reporter: PathReporter) -> None:
        """Report all problems in ``written``; ``reporter`` has the path to it."""
        for part, fields in (("spec", written.spec), ("status", written.status)):
            for name, field in (fields or {}).items():
                here, schema = reporter.at(part), convert_field(field)
                found = self._named(name, part, self.followed)
                is_on = any(self._is_on(each) for each in found)
                if not is_on:
                    self._unwritten(name, part, here)
                problems = (each for one in found for each in _below(schema, one.schema, ""))
                for problem in dict.fromkeys(problems):
                    _report(name, problem, here, is_on)
        for index, path in enumerate(written.without or ()):
            self._left_out(path, reporter.at("without", index))

    def _left_out(self, path: str, reporter: PathReporter) -> None:
        """Report a field that the CRD leaves out although core or capsmith uses it."""
        part, _, name = path.partition(".")
        if path == f"spec.{FIELD}" and is_machine_based(self.kind.spec):
            message = "without it, the bootstrap configurations of the Machines have an empty spec"
            reporter.add_warning("contract-field-dropped", message, "Remove it from `without`.")
            return
        if not name or not self._named(name, part, self.contracts.values()):
            message = f"no contract defines {quote(path)} for this role"
            hint = "Remove it; only fields of the contract can be left out."
            reporter.add_error("contract-field-unknown", message, hint)
            return
        if path == _REPLACED:
            return
        found = self._named(name, part, self.followed)
        needed = [each.rule for each in found if not each.feature and self._is_needed(each.rule)]
        if needed and not self.is_spoke:
            message = f"the contract requires {quote(path)} ({needed[0]})"
            reporter.add_error("contract-field-needed", message, "Remove it from `without`.")
        # Only a warning, because the author may have a reason, such as an existing CRD without the
        # field.
        elif any(self._is_on(each) for each in found):
            message = (
                f"capsmith uses {quote(path)}; the API server drops its value if the CRD lacks it"
            )
            reporter.add_warning("contract-field-dropped", message, "Remove it from `without`.")

    def _is_needed(self, rule: str) -> bool:
        """Return whether the contract requires the field, and core or clusterctl notices it."""
        known = [each.rules[rule] for each in self.followed if rule in each.rules]
        return any(each.level is Level.MUST and each.weight is Weight.ERROR for each in known)

    def _named(self, name: str, part: str, contracts: Iterable[Contract]) -> list[ContractField]:
        shapes = [contract.types[self.kind.spec.implements] for contract in contracts]
        if part == "status":
            return [shape.status[name] for shape in shapes if name in shape.status]
        moved = (move_fields(shape.spec.values(), self.paths) for shape in shapes)
        return [field for fields in moved for field in fields if field.name == name]

    def _is_on(self, field: ContractField) -> bool:
        if field.feature == CREDENTIALS_FEATURE:
            return has_identity_reference(self.kind, self.draft)
        return not field.feature or field.feature in self.kind.features

    def _unwritten(self, name: str, part: str, reporter: PathReporter) -> None:
        if not self._named(name, part, self.contracts.values()):
            message = f"no contract defines {quote(name)} in {part} for this role"
            reporter.add_error_at_key(
                "contract-field-unknown", message, f"Move it to `{part}`.", name
            )
            return
        message = f"{quote(name)} is declared, but capsmith neither reads nor writes it here"
        hint = "Let your code write it, or enable the feature or contract that it belongs to."
        reporter.add_warning("contract-field-unwritten", message, hint, name)


def _report(name: str, problem: _Mismatch, reporter: PathReporter, is_on: bool) -> None:
    field = quote(name + problem.field)
    if problem.is_type and not is_on:
        message = f"{field}: {problem.what}, which Cluster API reads"
        hint = "Write no value to the field, or add the contract's field in a new API version."
        reporter.add_warning("contract-field-type", message, hint, name)
    elif problem.is_type:
        message = f"{field}: {problem.what}"
        hint = "Use the type that Cluster API and the manager write."
        reporter.add_error("contract-field-type", message, hint, name)
    else:
        message = (
            f"{field} has {problem.what}, which the contract does not have: writes may be refused"
        )
        hint = "Remove the limit, or make sure that all values of the field satisfy it."
        reporter.add_warning("contract-field-limits", message, hint, name)


def _below(own: Schema, contract: Schema, path: str) -> Iterator[_Mismatch]:
    kinds = [_type(each) for each in (own, contract)]
    if kinds[1] not in _ACCEPTED.get(kinds[0], (kinds[0],)) and kinds[0] != "any":
        what = f"the type is {kinds[0]}, but {kinds[1]} in the contract"
        yield _Mismatch(path, what, True)
        return
    missing = _list_missing_values(own, contract)
    # The manager writes each status of a condition.  Other values are chosen by the author's code,
    # which may need only some of them.
    if missing and (contract["enum"] == _STATUSES or len(missing) == len(contract["enum"])):
        yield _Mismatch(path, f"the contract also allows {join_names(map(str, missing))}", True)
    yield from (_Mismatch(path, what, False) for what in _limits(own, contract))
    theirs = contract.get("properties", {})
    for name, below in own.get("properties", {}).items():
        if name in theirs:
            yield from _below(below, theirs[name], f"{path}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(own.get(key), Mapping) and isinstance(contract.get(key), Mapping):
            yield from _below(own[key], contract[key], path + mark)


def _list_missing_values(own: Schema, contract: Schema) -> list[Any]:
    """Return the values in the contract's ``enum`` that the author's ``enum`` lacks."""
    return [each for each in contract.get("enum", ()) if each not in own.get("enum", [each])]


def _limits(own: Schema, contract: Schema) -> Iterator[str]:
    """Yield the limits in the author's schema that some value of the contract violates."""
    for key in _MINIMA:
        if key in own and own[key] > contract.get(key, 0 if key != "minimum" else float("-inf")):
            yield f"{key} {own[key]}"
    for key in _MAXIMA:
        if key in own and own[key] < contract.get(key, float("inf")):
            yield f"{key} {own[key]}"
    for key in _NEW:
        if key in own and own[key] != contract.get(key):
            yield f"{key} {quote(str(own[key]))}"
    if "enum" in own and ("enum" not in contract or _list_missing_values(own, contract)):
        yield f"enum {join_names(map(str, own['enum']))}"
    properties = own.get("properties", {})
    # The API server fills in defaults before it checks which fields are required.
    filled = {name for name, below in properties.items() if "default" in below}
    required = set(own.get("required", ())) - set(contract.get("required", ())) - filled
    if required:
        yield f"required {join_names(sorted(required))}"
    list_type = own.get("x-kubernetes-list-type", "atomic")
    # An atomic list accepts every value; sets and maps refuse duplicates.
    if list_type != "atomic" and _list(own) != _list(contract):
        yield f"x-kubernetes-list-type {list_type}"
    rules = {rule["rule"] for rule in contract.get(_RULES, ())}
    if any(rule["rule"] not in rules for rule in own.get(_RULES, ())):
        yield _RULES


def _list(schema: Schema) -> tuple[Any, ...]:
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return (schema.get("x-kubernetes-list-type"), *sorted(keys))


def _type(schema: Schema) -> str:
    if schema.get(_INT_OR_STRING):
        return "integer or string"
    kind = str(schema.get("type", "any"))
    is_map = kind == "object" and "additionalProperties" in schema
    return "map" if is_map else kind
