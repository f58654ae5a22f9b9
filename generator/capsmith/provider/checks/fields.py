"""The author's fields beside the contract's: no redefinition, no two names for one attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from capsmith.contract.model import Contract
from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft
from capsmith.provider.example import example
from capsmith.provider.naming import attribute
from capsmith.provider_yaml.plain import is_required, plain
from capsmith.provider_yaml.values import mismatches
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.fields import FieldLike
    from capsmith.provider_yaml.sections import KindSpec

_STATUS_OF_CONTROLLERS = {
    "observedGeneration": "CRD-14",
    "v1beta2": "ST-04",
    "deprecated": "ST-05",
}


def check_fields(
    draft: Draft, described: KindSpec, contracts: list[Contract], place: Place
) -> None:
    """Report ``field-reserved``, ``field-attribute-clash`` and ``field-example``.

    A field of any contract version is reserved in all: a field that one version gives a meaning
    must not have another meaning when the provider moves on (IM-07).
    """
    for part, fields in (("spec", described.spec), ("status", described.status)):
        reserved = _reserved(part, described.implements, contracts, draft)
        check_own_fields(fields or {}, reserved, place.at(part))
    check_examples(described.spec or {}, place.at("spec"))


def check_own_fields(
    fields: Mapping[str, FieldLike], reserved: Mapping[str, str], place: Place
) -> None:
    """Check the author's fields beside the contract's, which are given with their rules."""
    for name in fields:
        if name in reserved:
            place.error_at_key(
                "field-reserved",
                f"{shown(name)} is a field of the contract ({reserved[name]})",
                "Remove it: capsmith adds it; `features` switches the optional fields.",
                name,
            )
    own = [name for name in fields if name not in reserved]
    _attributes([*reserved, *own], frozenset(own), place)
    for name in own:
        _nested(plain(fields[name]), place.at(name))


def check_examples(fields: Mapping[str, FieldLike], place: Place) -> None:
    """Report required fields for which samples and templates would hold an invalid value."""
    for name, field in fields.items():
        if is_required(field):
            _example(name, plain(field), place.at(name))


def _example(name: str, schema: Mapping[str, Any], place: Place) -> None:
    """Report a required field for which samples and templates would hold an invalid value."""
    wrong = next(mismatches(example(schema), schema), None)
    if wrong is not None:
        message = f"no value of {shown(name)} can be derived for samples and templates: {wrong[1]}"
        place.warning("field-example", message, "Add an `example`.")


def _reserved(part: str, role: str, contracts: list[Contract], draft: Draft) -> dict[str, str]:
    found = dict(_STATUS_OF_CONTROLLERS) if part == "status" else {}
    for contract in contracts:
        shape = contract.types[role]
        for name, field in (shape.spec if part == "spec" else shape.status).items():
            if field.feature != CREDENTIALS_FEATURE or draft.identities:
                found.setdefault(name, field.rule)
    return found


def _nested(schema: Mapping[str, Any], place: Place) -> None:
    properties: Mapping[str, Any] = schema.get("properties", {})
    _attributes(properties, frozenset(properties), place.at("properties"))
    for name, below in properties.items():
        _nested(below, place.at("properties", name))
    for part in ("items", "additionalProperties"):
        if part in schema:
            _nested(schema[part], place.at(part))


def _attributes(everything: Iterable[str], own: frozenset[str], place: Place) -> None:
    taken: dict[str, str] = {}
    for name in everything:
        other = taken.setdefault(attribute(name), name)
        if other != name and name in own:
            message = f"{shown(name)} and {shown(other)} would both be {shown(attribute(name))}"
            hint = "Choose names that differ more: in Python they are snake_case."
            place.error_at_key("field-attribute-clash", message, hint, name)
