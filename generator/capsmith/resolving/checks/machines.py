"""Check kinds that create objects of other kinds: machine pools and control planes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.cel_text import is_transition
from capsmith.provider.described_kinds import FIELD, MACHINES, is_machine_based
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider_yaml.field_schemas import convert_field, is_required
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote, suggest

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import KindSpec

_FOR_PEOPLE = ("title", "description", "example")


def check_pools(draft: Draft, top: PathReporter) -> None:
    """Report pools whose machine kind is unknown or does not match their fields (MP-07, MP-11).

    Ids: ``pool-machine-kind``, ``pool-field-missing``, ``pool-field-differs``.

    A pool with Machines creates objects of another kind.  The pool must have every field that this
    kind requires, and a field that both have must mean the same.
    """
    for kind in draft.kinds:
        reporter = top.at(kind.section, kind.name)
        pool = kind.spec.implements == "InfraMachinePool"
        if pool and MACHINES in kind.features:
            _check_machines(kind, draft, reporter)
        elif getattr(kind.spec, "machine_kind", None) is not None:
            message = f"{quote(kind.name)} is not a pool with Machines"
            hint = (
                "Enable the feature `machines`, or remove `machineKind`."
                if pool
                else "Remove it: it belongs to kinds that implement InfraMachinePool."
            )
            reporter.add_error_at_key("pool-machine-kind", message, hint, "machineKind")


def _check_machines(pool: DraftKind, draft: Draft, reporter: PathReporter) -> None:
    known, chosen = draft.machine_kinds, pool.machine_kind
    if chosen is None:
        if known:
            message = (
                f"the kind of the machines of {quote(pool.name)} is ambiguous: {join_names(known)}"
            )
            hint = f"Choose one, such as `machineKind: {known[0]}`."
            reporter.add_error("pool-machine-kind", message, hint, "features")
        return
    if chosen not in known:
        message = f"{quote(chosen)} is not a kind that implements InfraMachine"
        reporter.add_error("pool-machine-kind", message, suggest(chosen, known), "machineKind")
        return
    (machine,) = (kind.spec for kind in draft.kinds if kind.name == chosen)
    _check_fields(pool.spec, chosen, machine, reporter)


def _check_fields(pool: KindSpec, name: str, machine: KindSpec, reporter: PathReporter) -> None:
    own = pool.spec or {}
    for field, described in (machine.spec or {}).items():
        here = own.get(field)
        if here is None:
            if is_required(described):
                message = f"{quote(name)} requires {quote(field)}, but the pool has no such field"
                hint = f"Add {quote(field)} to the spec of the pool as in {quote(name)}."
                _check_at_spec(reporter, "pool-field-missing", message, hint, pool)
            continue
        if (
            is_required(described)
            and not is_required(here)
            and "default" not in convert_field(here)
        ):
            message = f"{quote(name)} requires {quote(field)}, but the pool does not"
            reporter.add_error_at_key(
                "pool-field-missing", message, "Require it here as well.", "spec", field
            )
        if _meaning(convert_field(here)) != _meaning(convert_field(described)):
            message = f"{quote(field)} has another schema in {quote(name)}"
            hint = (
                "Write the same schema, or use another name: machines receive the value unchanged."
            )
            reporter.add_error_at_key("pool-field-differs", message, hint, "spec", field)


def _check_at_spec(
    reporter: PathReporter, id: str, message: str, hint: str, pool: KindSpec
) -> None:
    below = ("spec",) if pool.spec is not None else ()
    reporter.add_error_at_key(id, message, hint, *below)


def _meaning(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions and transition rules."""
    kept = {key: value for key, value in schema.items() if key not in _FOR_PEOPLE}
    rules = kept.pop("x-kubernetes-validations", ())
    # A transition rule restricts changes to an object, not the value that a machine gets from its
    # pool.
    lasting = [rule for rule in rules if not is_transition(rule["rule"])]
    if lasting:
        kept["x-kubernetes-validations"] = lasting
    if "properties" in kept:
        kept["properties"] = {name: _meaning(below) for name, below in kept["properties"].items()}
    for part in ("items", "additionalProperties"):
        if part in kept:
            kept[part] = _meaning(kept[part])
    return kept


def check_control_planes(draft: Draft, top: PathReporter) -> None:
    """Report control planes whose Machines lack a valid bootstrap configuration (CP-19).

    Ids: ``bootstrap-missing``, ``bootstrap-unknown``, ``bootstrap-unused`` and ``field-reserved``.
    """
    for kind in draft.kinds_of("controlPlane"):
        reporter = top.at("controlPlane", kind.name)
        if is_machine_based(kind.spec):
            _check_bootstrap(draft, kind, reporter)
            _check_field(kind.spec, reporter)
        elif getattr(kind.spec, "bootstrap", None) is not None:
            message = "a managed control plane has no Machines to bootstrap"
            reporter.add_error_at_key("bootstrap-unused", message, "Remove it.", "bootstrap")


def _check_bootstrap(draft: Draft, kind: DraftKind, reporter: PathReporter) -> None:
    if kind.bootstrap is not None:
        return
    named = getattr(kind.spec, "bootstrap", None)
    kinds = [each.name for each in draft.kinds_of("bootstrap")]
    if named is not None:
        message = f"{quote(named)} is not a kind of the section bootstrap"
        hint = "Use one of them, or that of another provider: {group: …, kind: …}."
        reporter.add_error("bootstrap-unknown", message, hint, "bootstrap")
    elif kinds:
        message = f"the kind of bootstrap configurations is ambiguous: {join_names(kinds)}"
        reporter.add_error_at_key("bootstrap-missing", message, "Choose one: `bootstrap: <kind>`.")
    else:
        message = "its Machines require bootstrap configurations, but there is no section bootstrap"
        hint = "Add one, or name the kind of another provider: `bootstrap: {group: …, kind: …}`."
        reporter.add_error_at_key("bootstrap-missing", message, hint)


def _check_field(described: KindSpec, reporter: PathReporter) -> None:
    if FIELD in (described.spec or {}):
        message = f"{quote(FIELD)} holds the spec of the Machines' bootstrap configurations"
        reporter.add_error_at_key("field-reserved", message, "Remove it.", "spec", FIELD)
