"""The author's fields beside the contract's: no redefinition, no two names for one attribute."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from capsmith.contract.model import Contract
from capsmith.output.example import example
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft
from capsmith.provider.naming import attribute
from capsmith.provider_yaml.plain import is_required, plain
from capsmith.provider_yaml.values import mismatches
from capsmith.yamldoc.quote import shown
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike
    from capsmith.provider_yaml.model import KindSpec

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
"""Fields of the move to new conditions -> rule, message and hint."""
_CONDITIONS_READ_BY_CORE = frozenset(
    {"InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane"}
)


def check_fields(
    draft: Draft, described: KindSpec, contracts: list[Contract], place: Place
) -> None:
    """Report ``field-reserved``, ``-attribute-clash``, ``-example``, ``-required``, ST-04, ST-05.

    A field of any contract version is reserved in all: a field that one version gives a meaning
    must not have another meaning when the provider moves on (IM-07).
    """
    for part, fields in (("spec", described.spec), ("status", described.status)):
        reserved = _reserved(part, described.implements, contracts, draft)
        if part == "spec" and "failureDomain" in (fields or {}):
            _failure_domain((fields or {})["failureDomain"], draft, reserved, place.at(part))
        check_own_fields(fields or {}, reserved, place.at(part))
    if described.implements in _CONDITIONS_READ_BY_CORE:
        _legacy_conditions(described.status or {}, place.at("status"))
    check_examples(described.spec or {}, place.at("spec"))
    _required_status(described.status or {}, place.at("status"))


def check_own_fields(
    fields: Mapping[str, FieldLike], reserved: Mapping[str, str], place: Place
) -> None:
    """Check the author's fields beside the contract's, which are given with their rules."""
    for name in fields:
        if name in reserved:
            place.error_at_key(
                "field-reserved",
                f"{shown(name)} is a field of the contract ({reserved[name]})",
                "Remove it: capsmith adds it; `features` enables the optional fields.",
                name,
            )
    own = [name for name in fields if name not in reserved]
    _attributes([*reserved, *own], frozenset(own), place)
    for name in own:
        _nested(plain(fields[name]), place.at(name))


def _required_status(fields: Mapping[str, FieldLike], place: Place) -> None:
    """Report required fields of the status, which the generated CRD does not require.

    The API server would refuse the conditions that the manager writes before the author's code
    returns the first state.
    """
    for name, field in fields.items():
        if is_required(field) and "default" not in plain(field):
            message = f"{shown(name)} is not required in the CRD: conditions are written before it"
            place.warning(
                "field-required", message, "Give it a default, or do not require it.", name
            )


def check_examples(fields: Mapping[str, FieldLike], place: Place) -> None:
    """Report required fields for which samples and templates would hold an invalid value."""
    for name, field in fields.items():
        if is_required(field):
            _example(name, plain(field), place.at(name))


def _failure_domain(field: FieldLike, draft: Draft, reserved: dict[str, str], place: Place) -> None:
    """Report IM-07: without versions of contract v1beta1 the field is the author's."""
    followed = {version.contract for version in draft.api_versions}
    if reserved.get("failureDomain") != "IM-07" or "v1beta1" in followed:
        return
    del reserved["failureDomain"]
    hint = "Use it for the zone of the machine, or give the field another name."
    if plain(field).get("type") == "string":
        message = "core copies `spec.failureDomain` to the Machine, whatever its origin"
        place.warning("IM-07", message, hint, "failureDomain")
    else:
        message = "core reads `spec.failureDomain`, which must be a string"
        place.error("IM-07", message, hint, "failureDomain")


def _legacy_conditions(fields: Mapping[str, FieldLike], place: Place) -> None:
    """Report ST-04 and ST-05: conditions beside those of the contract."""
    for name, (rule, message, hint) in _LEGACY_STATUS.items():
        if name in fields:
            place.warning(rule, message, hint, name)


def _example(name: str, schema: Mapping[str, Any], place: Place) -> None:
    """Report a required field for which samples and templates would hold an invalid value."""
    wrong = next(mismatches(example(schema), schema), None)
    if wrong is not None:
        message = (
            f"no valid value of {shown(name)} can be derived for samples and templates: {wrong[1]}"
        )
        place.warning("field-example", message, "Add an `example`.")


def _reserved(part: str, role: str, contracts: list[Contract], draft: Draft) -> dict[str, str]:
    found: dict[str, str] = {}
    for contract in contracts:
        shape = contract.types[role]
        for name, field in (shape.spec if part == "spec" else shape.status).items():
            if field.feature != CREDENTIALS_FEATURE or draft.identities:
                found.setdefault(name, field.rule)
    return found


def _nested(schema: Mapping[str, Any], place: Place) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    for name, other in _clashes(properties):
        _numbered(name, other, place, "properties", name)
    for name, below in properties.items():
        _nested(below, place.at("properties", name))
    for part in ("items", "additionalProperties"):
        if part in schema:
            _nested(schema[part], place.at(part))


def _attributes(everything: Iterable[str], own: frozenset[str], place: Place) -> None:
    for name, other in _clashes(everything):
        if name in own and other in own:
            _numbered(name, other, place, name)
        elif name in own:
            pythonic = shown(attribute(name))
            message = f"{shown(name)} and {shown(other)} would both be {pythonic} in Python"
            hint = "Choose names that still differ in snake_case."
            place.error_at_key("field-attribute-clash", message, hint, name)


def _numbered(name: str, other: str, place: Place, *path: str) -> None:
    message = f"{shown(name)} gets a number in Python, because {shown(other)} has the name"
    hint = f"Choose names whose Python form is not {shown(attribute(name))} for both."
    place.warning("field-attribute-clash", message, hint, *path)


def _clashes(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names whose attribute another one has, with that."""
    taken: dict[str, str] = {}
    for name in names:
        other = taken.setdefault(attribute(name), name)
        if other != name:
            yield name, other
