"""Check the author's status fields for machines in a pool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from capsmith.contract.model import Contract
from capsmith.output.instances import CONDITIONS, INSTANCES
from capsmith.provider.described_kinds import MACHINES, find_instance_status
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider_yaml.field_schemas import convert_field, is_required
from capsmith.resolving.checks.fields import check_own_fields
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import quote

if TYPE_CHECKING:
    from capsmith.provider_yaml.forms import FieldLike

_POOL: Final = "InfraMachinePool"
_KEY: Final = "instanceStatus"
_RULES: Final = "x-kubernetes-validations"


def check_instance_status(draft: Draft, contracts: Iterable[Contract], top: PathReporter) -> None:
    """Report `instanceStatus` on kinds that cannot have it, and invalid fields in it.

    Ids: ``instance-status``, ``field-reserved`` and ``field-attribute-clash``.
    """
    known = list(contracts)
    for kind in draft.kinds:
        fields = find_instance_status(kind.spec)
        if fields is None:
            continue
        reporter = top.at(kind.section, kind.name)
        problem = _find_misuse(kind)
        if problem is not None:
            message, hint = problem
            reporter.add_error_at_key("instance-status", message, hint, _KEY)
            continue
        check_own_fields(fields, _list_reserved(known), reporter.at(_KEY))
        for name, field in fields.items():
            _check_field(name, field, reporter.at(_KEY))


def _find_misuse(kind: DraftKind) -> tuple[str, str] | None:
    """Return the message and the hint if the kind's machines can have no own status."""
    if kind.spec.implements != _POOL:
        message = f"{quote(kind.name)} has no `status.instances`"
        return message, f"Remove it: it belongs to kinds that implement {_POOL}."
    if MACHINES in kind.features:
        message = f"each machine of {quote(kind.name)} is an object with a status of its own"
        return message, f"Write the fields to `status` of {quote(str(kind.machine_kind))}."
    without = kind.spec.contract_fields.without if kind.spec.contract_fields is not None else None
    if INSTANCES not in kind.features or f"status.{INSTANCES}" in (without or ()):
        message = f"{quote(kind.name)} does not list its machines"
        return message, "Remove it, or leave `status.instances` and the feature `instances` on."
    return None


def _list_reserved(contracts: Iterable[Contract]) -> dict[str, str]:
    """Return the contract's fields of a machine in the status of a pool, with their rule."""
    found: dict[str, str] = {}
    for contract in contracts:
        field = contract.types[_POOL].status[INSTANCES]
        for name in (*field.schema["items"]["properties"], CONDITIONS):
            found.setdefault(name, field.rule)
    return found


def _check_field(name: str, field: FieldLike, reporter: PathReporter) -> None:
    schema = convert_field(field)
    if is_required(field):
        message = f"{quote(name)} is required, but your code need not report it"
        reporter.add_error("instance-status", message, "Do not require it.", name)
    if "default" in schema:
        message = f"{quote(name)} has a default, but your code reports the value"
        reporter.add_error("instance-status", message, "Remove the default.", name)
    if _has_rules(schema):
        message = f"{quote(name)} has CEL rules, which are too expensive for 10,000 machines"
        reporter.add_error("instance-status", message, "Remove the rules.", name)


def _has_rules(schema: Mapping[str, Any]) -> bool:
    below = [*schema.get("properties", {}).values()]
    below += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    return bool(schema.get(_RULES)) or any(
        _has_rules(each) for each in below if isinstance(each, Mapping)
    )
