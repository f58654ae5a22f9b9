"""Replace the contract's field schemas with the author's, for existing CRDs with other limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capsmith.contract.model import ContractField
from capsmith.provider.fields import ContractFields, OwnField, Schema
from capsmith.provider.model import Provider, Resource
from capsmith.provider.naming import pluralise

RECORDED = "recorded"
"""Spec field in which the manager stores its records; also the name of the feature."""
INSTANCE_STATUS = "instanceStatus"
"""Feature of pools whose machines have conditions and status fields declared by the author."""
_OPEN = "x-kubernetes-preserve-unknown-fields"


def apply_own_schemas(
    fields: Iterable[ContractField], part: str, written: ContractFields | None
) -> list[ContractField]:
    """Return the author's additional fields, then the contract's fields with the author's schemas.

    Contract fields that the author excludes are omitted.  ``part`` is ``spec`` or ``status``;
    ``written`` is None if the author overrides nothing.  Status fields are always optional, because
    the manager writes conditions before anything else.
    """
    contract = list(fields)
    if written is None:
        return contract
    is_status = part == "status"
    own = written.status if is_status else written.spec
    others = own.keys() - {field.name for field in contract}
    further = [
        ContractField(name, own[name].schema, own[name].required and not is_status, rule="")
        for name in sorted(others)
    ]
    return further + [
        _own(field, own[field.name], is_status) if field.name in own else field
        for field in contract
        if f"{part}.{field.name}" not in written.without
    ]


def find_changed_fields(written: ContractFields | None) -> frozenset[str]:
    """Return the names of the contract's fields in spec that the author declares or leaves out."""
    if written is None:
        return frozenset()
    left_out = (path.removeprefix("spec.") for path in written.without)
    return frozenset({*written.spec, *left_out})


def choose_schema(own: OwnField, contract: Schema) -> Schema:
    """Return the schema for a contract field that the author declares as ``own``.

    Properties that only the schema ``contract`` declares are added unless ``own`` is marked exact.
    """
    return own.schema if own.exact else complete_schema(own.schema, contract)


def _own(field: ContractField, own: OwnField, is_status: bool) -> ContractField:
    required = field.required if is_status else own.required
    return field._replace(schema=choose_schema(own, field.schema), required=required)


def complete_schema(own: Schema, contract: Schema) -> dict[str, Any]:
    """Return the schema ``own`` plus the properties that only the schema ``contract`` declares.

    Without these properties, the API server would drop values that Cluster API or the manager
    writes.
    """
    merged = {"description": contract["description"], **own} if "description" in contract else own
    # The order of keys is visible in the CRD: in the contract's order, a schema that changes one
    # limit results in a one-line diff.
    found = _in_order(merged, contract)
    if "properties" in contract and "additionalProperties" not in own and not own.get(_OPEN):
        theirs, mine = contract["properties"], own.get("properties", {})
        below = {
            name: complete_schema(mine[name], schema) if name in mine else schema
            for name, schema in theirs.items()
        }
        found["properties"] = {**below, **{k: v for k, v in mine.items() if k not in theirs}}
    for key in ("items", "additionalProperties"):
        if isinstance(own.get(key), Mapping) and isinstance(contract.get(key), Mapping):
            found[key] = complete_schema(own[key], contract[key])
    return found


def _in_order(schema: Schema, contract: Schema) -> dict[str, Any]:
    """Return ``schema`` with the contract's keys first, in the contract's order."""
    return {key: schema[key] for key in (*contract, *schema) if key in schema}


def find_declared_crds(provider: Provider) -> frozenset[str]:
    """Return the file names of CRDs in which the author overrides parts of the contract.

    A violation in such a file is the author's own choice, for example to keep existing CRDs.
    """
    return frozenset(
        f"{each.group}_{each.plural}.yaml" for each in provider.resources if _is_declared(each)
    )


def _is_declared(resource: Resource) -> bool:
    return (
        resource.options.transition_rules
        or resource.options.scale is None
        or str(resource.plural) != pluralise(str(resource.kind).lower())
        or any(map(_is_otherwise, _contract_fields(resource)))
    )


def _contract_fields(resource: Resource) -> Iterator[ContractFields]:
    versions = (resource.version_fields or {}).values()
    for written in (resource.contract_fields, *(each.contract_fields for each in versions)):
        if written is not None:
            yield written


def _is_otherwise(written: ContractFields) -> bool:
    fields = (*written.spec.values(), *written.status.values())
    return bool(written.without or written.paths or fields or written.metadata)
