"""Find where CRDs deviate from the contract: in its fields, in what is required, in limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from capsmith.contract.model import Contract
from capsmith.importing.compare import RULES, Schema, compare_schemas, normalize
from capsmith.importing.fields import convert_field
from capsmith.manifests.parse import list_of, mapping_of, texts_of
from capsmith.provider.contract_fields import complete_schema

Reserved = Mapping[str, frozenset[str]]
"""Names of fields that belong to the contract and not to the author, by part of the object."""
_CREDENTIALS = "credentials"
EMBEDDED = "bootstrapConfigSpec"
"""The spec of the bootstrap configurations in that of a control plane; another kind defines it."""
_LIMITS = ("minProperties", "maxProperties", "nullable", "default")
_RULED = ("status", "spec.template")
"""Parts whose rules are no author's in another key; of a template also spec."""


def find_contract_fields(
    schema: Schema, made: Schema, reserved: Reserved, *, has_required: bool = True
) -> dict[str, Any]:
    """Return the key ``contractFields`` of a kind; {} if the CRD has the contract's fields as such.

    ``made`` is the schema that capsmith generates for a kind without fields of an author;
    ``reserved`` fields that are not in it belong to another version of the contract, or to a
    feature that is off.
    """
    found: dict[str, Any] = {}
    without, is_exact = [], False
    for part in ("spec", "status"):
        own, generated = (mapping_of(each, "properties", part) for each in (schema, made))
        fields = _fields(own, generated, reserved[part], has_required and part == "spec")
        if fields:
            found[part] = {name: field for name, (field, _) in fields.items()}
        is_exact |= any(is_less for _, is_less in fields.values())
        there = mapping_of(own, "properties")
        without += [
            f"{part}.{name}" for name in mapping_of(generated, "properties") if name not in there
        ]
    if without:
        found["without"] = without
    return {**found, "exact": True} if is_exact else found


def _fields(
    own: Schema, made: Schema, reserved: frozenset[str], has_required: bool
) -> dict[str, tuple[Any, bool]]:
    """Return fields by name, with whether they lack properties that the contract has."""
    required, usual = (set(texts_of(each, "required")) for each in (own, made))
    generated, found = mapping_of(made, "properties"), {}
    known = reserved.union(generated) - {EMBEDDED}
    for name, field in mapping_of(own, "properties").items():
        if name not in known or not isinstance(field, Mapping):
            continue
        usual_field = mapping_of(generated, name)
        is_other = name not in generated
        is_other |= has_required and (name in required) is not (name in usual)
        if is_other or compare_schemas(field, usual_field):
            is_less = bool(compare_schemas(field, complete_schema(field, usual_field)))
            written = convert_field(normalize(field), has_required and name in required)
            found[str(name)] = (written, is_less)
    return found


def list_reserved_fields(
    role: str, followed: Collection[str], contracts: Mapping[str, Contract]
) -> Reserved:
    """Return the fields that any version of the contract has in a role.

    An author may have credentials without identities, and the failure domain of v1beta1 where no
    version follows that.
    """
    found: dict[str, frozenset[str]] = {"spec": frozenset(), "status": frozenset()}
    for contract in contracts.values():
        shape = contract.types.get(role)
        for part, fields in (("spec", shape.spec), ("status", shape.status)) if shape else ():
            found[part] |= {each.name for each in fields.values() if each.feature != _CREDENTIALS}
    if "v1beta1" not in followed:
        found["spec"] -= {"failureDomain"}
    return found


def find_required_parts(schema: Schema) -> list[str] | None:
    """Return ``[spec]`` or ``[]`` where that does not follow from the fields of the spec."""
    is_usual = bool(list_of(mapping_of(schema, "properties", "spec"), "required"))
    is_required = "spec" in list_of(schema, "required")
    if is_usual == is_required:
        return None
    return ["spec"] if is_required else []


def find_part_limits(schema: Schema, parts: Collection[str]) -> dict[str, Any]:
    """Return the limits of whole parts of an object, such as ``spec.template``, by part."""
    found = {}
    for part in parts:
        keys = [step for name in part.split(".") for step in ("properties", name)]
        here = normalize(mapping_of(schema, *keys))
        limits = {key: here[key] for key in _LIMITS if key in here}
        if RULES in here and (part in _RULED or (part == "spec" and "spec.template" in parts)):
            limits[RULES] = here[RULES]
        required = here.get("required") if part == "status" else None
        if required:
            limits["required"] = required
        if limits:
            found[part] = limits
    return found
