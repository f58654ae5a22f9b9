"""Check that the author's fields conflict neither with the contract's fields nor with each
other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capsmith.contract.model import Contract
from capsmith.output.example import build_example
from capsmith.output.identities import IDENTITY_REF
from capsmith.provider.contract_fields import RECORDED
from capsmith.provider.credentials import has_identity_reference
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.naming import name_attribute
from capsmith.provider_yaml.field_schemas import convert_field, is_required
from capsmith.provider_yaml.scale import list_scale_paths
from capsmith.provider_yaml.values import find_value_errors
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import KindSpec, PrinterColumnSpec

_LEGACY_STATUS = {
    "v1beta2": (
        "ST-04",
        "core reads the conditions in `v1beta2` instead of those that capsmith writes",
        "Remove it, or keep its Ready up to date in the status that your code returns.",
    ),
    "deprecated": (
        "ST-05",
        "core does not read `deprecated`, and capsmith does not write it",
        "Remove it once no client reads it; until then, return it with the status.",
    ),
}
"""Status fields from the transition to new conditions -> rule, message and hint."""
_CONDITIONS_READ_BY_CORE = frozenset(
    {"InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane"}
)

_RANGES = "ranges"
# Not `addresses`: by that field and `prefix`, a run of conformance knows a kind with ranges.
_OWN_WITHOUT_RANGES = ("prefix", "gateway", "excludedAddresses", "allocateReserved")


def check_fields(
    draft: Draft,
    kind: DraftKind,
    described: KindSpec,
    contracts: list[Contract],
    reporter: PathReporter,
) -> None:
    """Report a kind's fields that clash, are invalid, or must not be required.

    ``described`` is the kind's entry, or that entry with the fields of another API version.

    Ids: ``field-reserved``, ``field-attribute-clash``, ``field-example``, ``field-required``, ST-04
    and ST-05.  A field in any contract version is reserved in all of them, so that its meaning does
    not change when the provider moves to that version (IM-07).
    """
    for part, fields in (("spec", described.spec), ("status", described.status)):
        reserved = _reserved(part, described.implements, contracts)
        if part == "spec" and not has_identity_reference(kind, draft):
            reserved.pop(IDENTITY_REF, None)
        if part == "spec" and RECORDED not in kind.features:
            reserved.pop(RECORDED, None)
        if part == "spec" and _RANGES not in kind.features:
            for name in _OWN_WITHOUT_RANGES:
                reserved.pop(name, None)
        if part == "spec" and "failureDomain" in (fields or {}):
            _check_failure_domain(
                (fields or {})["failureDomain"], draft, reserved, reporter.at(part)
            )
        check_own_fields(fields or {}, reserved, reporter.at(part))
    if described.implements in _CONDITIONS_READ_BY_CORE:
        _check_legacy_conditions(described.status or {}, reporter.at("status"))
    check_examples(described.spec or {}, reporter.at("spec"))
    _check_required_status(described.status or {}, reporter.at("status"))


def check_own_fields(
    fields: Mapping[str, FieldLike], reserved: Mapping[str, str], reporter: PathReporter
) -> None:
    """Report fields whose name is in ``reserved``, which maps contract fields to rule ids.

    Fields that would have the same Python attribute are reported as well. Ids: ``field-reserved``
    and ``field-attribute-clash``.
    """
    for name in fields:
        if name in reserved:
            reporter.add_error_at_key(
                "field-reserved",
                f"{quote(name)} is a field of the contract ({reserved[name]})",
                "Remove it: capsmith adds it; `features` enables the optional fields.",
                name,
            )
    own = [name for name in fields if name not in reserved]
    # The contract's names come first, so that a clash is reported at the author's field.
    _check_attributes([*reserved, *own], frozenset(own), reporter)
    for name in own:
        _check_nested(convert_field(fields[name]), reporter.at(name))


def _check_required_status(fields: Mapping[str, FieldLike], reporter: PathReporter) -> None:
    """Report required status fields, which the generated CRD does not require.

    Otherwise the API server would refuse the conditions that the manager writes before the author's
    code returns the first state.
    """
    for name, field in fields.items():
        if is_required(field) and "default" not in convert_field(field):
            message = f"{quote(name)} is not required in the CRD: conditions are written before it"
            reporter.add_warning(
                "field-required", message, "Give it a default, or do not require it.", name
            )


def check_examples(fields: Mapping[str, FieldLike], reporter: PathReporter) -> None:
    """Report required fields for which no valid example can be derived for samples and templates.

    Id: ``field-example``.
    """
    for name, field in fields.items():
        if is_required(field):
            _check_example(name, convert_field(field), reporter.at(name))


def _check_failure_domain(
    field: FieldLike, draft: Draft, reserved: dict[str, str], reporter: PathReporter
) -> None:
    """Report IM-07 for an author's field with the name of contract v1beta1's failure domain.

    Does nothing if any API version follows v1beta1.  Otherwise the name is removed from
    ``reserved``, because the author may use it.
    """
    followed = {version.contract for version in draft.api_versions}
    if reserved.get("failureDomain") != "IM-07" or "v1beta1" in followed:
        return
    del reserved["failureDomain"]
    hint = "Use it for the zone of the machine, or give the field another name."
    if convert_field(field).get("type") == "string":
        message = "core copies `spec.failureDomain` to the Machine, whatever its origin"
        reporter.add_warning("IM-07", message, hint, "failureDomain")
    else:
        message = "core reads `spec.failureDomain`, which must be a string"
        reporter.add_error("IM-07", message, hint, "failureDomain")


def _check_legacy_conditions(fields: Mapping[str, FieldLike], reporter: PathReporter) -> None:
    """Report ST-04 and ST-05 for condition fields in addition to the contract's."""
    for name, (rule, message, hint) in _LEGACY_STATUS.items():
        if name in fields:
            reporter.add_warning(rule, message, hint, name)


def _check_example(name: str, schema: Mapping[str, Any], reporter: PathReporter) -> None:
    """Report a required field for which samples and templates would contain an invalid value."""
    wrong = next(find_value_errors(build_example(schema), schema), None)
    if wrong is not None:
        message = (
            f"no valid value of {quote(name)} can be derived for samples and templates: {wrong[1]}"
        )
        reporter.add_warning("field-example", message, "Add an `example`.")


def _reserved(part: str, role: str, contracts: list[Contract]) -> dict[str, str]:
    found: dict[str, str] = {}
    for contract in contracts:
        shape = contract.types[role]
        for name, field in (shape.spec if part == "spec" else shape.status).items():
            found.setdefault(name, field.rule)
    return found


def _check_nested(schema: Mapping[str, Any], reporter: PathReporter) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name, other in _clashes(properties):
        _check_numbered(name, other, reporter, "properties", name)
    for name, below in properties.items():
        _check_nested(below, reporter.at("properties", name))
    for part in ("items", "additionalProperties"):
        if part in schema:
            _check_nested(schema[part], reporter.at(part))


def _check_attributes(
    everything: Iterable[str], own: frozenset[str], reporter: PathReporter
) -> None:
    for name, other in _clashes(everything):
        if name in own and other in own:
            _check_numbered(name, other, reporter, name)
        elif name in own:
            pythonic = quote(name_attribute(name))
            message = f"{quote(name)} and {quote(other)} would both be {pythonic} in Python"
            hint = "Choose names that still differ in snake_case."
            reporter.add_error_at_key("field-attribute-clash", message, hint, name)


def _check_numbered(name: str, other: str, reporter: PathReporter, *path: str) -> None:
    message = f"{quote(name)} gets a number in its Python name, which {quote(other)} already has"
    hint = f"Choose names whose Python form is not {quote(name_attribute(name))} for both."
    reporter.add_warning("field-attribute-clash", message, hint, *path)


def _clashes(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name whose Python attribute another name already has, with the other name."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(name_attribute(name), name)
        if other != name:
            yield name, other


_NAME = r"(?:[^\s.,\[\]$@{}\\]|\\.)+"


_OPERAND = r"(?:[A-Za-z0-9_/-]|\\.)+"


_QUOTED = r"'(?:[^'\\\n]|\\.)+'|\"(?:[^\"\\\n]|\\.)+\""


_VALUE = rf"(?:{_QUOTED}|-?[0-9]+(?:\.[0-9]+)?|true|false)"


# The API server accepts a filter without @, and reads it as if it were there.
_FILTER = rf"\?\(@?(?:\.{_OPERAND})+ ?(?:==|!=|<=?|>=?) ?{_VALUE}\)"


# The API server reads [] as [0:1].
_INDEX = rf"\[(?:{_QUOTED}|\*|-?[0-9]+|-?[0-9]*:-?[0-9]*|{_FILTER}|)\]"


_PATH = re.compile(rf"(?:\.{_NAME}(?:{_INDEX})*)+")


_FIRST = re.compile(r"\.(spec|status)\.([A-Za-z0-9_-]+)")


def check_columns(described: KindSpec, contracts: list[Contract], reporter: PathReporter) -> None:
    """Report printer columns that the API server rejects or that would always be empty.

    Ids: ``column-path``, ``column-path-unknown`` and ``spec-repeated``.
    """
    check_column_forms(described.printer_columns, reporter)
    for index, column in enumerate(described.printer_columns or ()):
        first = _FIRST.match(column.json_path)
        if first and _PATH.fullmatch(column.json_path):
            here = reporter.at("printerColumns", index)
            _check_column(first[1], first[2], described, contracts, here)


def check_column_forms(columns: Sequence[PrinterColumnSpec] | None, reporter: PathReporter) -> None:
    """Report printer columns that the API server rejects, or that have the same name.

    Ids: ``column-path`` and ``spec-repeated``.
    """
    seen: set[str] = set()
    for index, column in enumerate(columns or ()):
        here = reporter.at("printerColumns", index)
        if column.name in seen:
            message = f"duplicate column {quote(column.name)}"
            here.add_warning("spec-repeated", message, "Give it another name.", "name")
        seen.add(column.name)
        if not _PATH.fullmatch(column.json_path):
            message = f"{quote(column.json_path)} is not a valid JSON path"
            hint = (
                'Write a path such as .spec.size or .status.conditions[?(@.type=="Ready")].status.'
            )
            here.add_error("column-path", message, hint, "jsonPath")


def check_scale(described: KindSpec, contracts: list[Contract], reporter: PathReporter) -> None:
    """Report fields of the subresource scale that the kind does not have (``scale-path-unknown``).

    Only the first name of a path is checked.
    """
    for key, path in (list_scale_paths(described.scale) or {}).items():
        part, name = path.split(".")[1:3]
        known = _list_known(part, described, contracts)
        if name not in known:
            message = f"unknown field {quote(name)} in {part}: the kind has no subresource scale"
            reporter.add_error("scale-path-unknown", message, suggest(name, known), "scale", key)


def _check_column(
    part: str, name: str, described: KindSpec, contracts: list[Contract], here: PathReporter
) -> None:
    known = _list_known(part, described, contracts)
    if name not in known:
        message = f"unknown field {quote(name)} in {part}: the column stays empty"
        here.add_warning("column-path-unknown", message, suggest(name, known), "jsonPath")


def _list_known(part: str, described: KindSpec, contracts: list[Contract]) -> set[str]:
    """Return the names of all fields in spec or status, from provider.yaml and the contract."""
    own = described.spec if part == "spec" else described.status
    known = set(own or {})
    for contract in contracts:
        shape = contract.types[described.implements]
        known |= set(shape.spec if part == "spec" else shape.status)
    return known
