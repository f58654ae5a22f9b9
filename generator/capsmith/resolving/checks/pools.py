"""Check pools with Machines: the kind of their machines, and the fields that it requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.cel_text import is_transition
from capsmith.provider.described_kinds import MACHINES
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider_yaml.plain import is_required, plain
from capsmith.yamldoc.quote import did_you_mean, listed, shown
from capsmith.yamldoc.reporter import Place

if TYPE_CHECKING:
    from capsmith.provider_yaml.model import KindSpec

_FOR_PEOPLE = ("title", "description", "example")


def check_pools(draft: Draft, top: Place) -> None:
    """Report ``pool-machine-kind``, ``pool-field-missing``, ``pool-field-differs`` (MP-07, MP-11).

    A pool with Machines creates objects of another kind: what that kind requires has to be a field
    of the pool, and a field that both have has to mean the same.
    """
    for kind in draft.kinds:
        place = top.at(kind.section, kind.name)
        pool = kind.spec.implements == "InfraMachinePool"
        if pool and MACHINES in kind.features:
            _machines(kind, draft, place)
        elif getattr(kind.spec, "machine_kind", None) is not None:
            message = f"{shown(kind.name)} is not a pool with Machines"
            hint = (
                "Enable the feature `machines`, or remove this."
                if pool
                else "Remove it: it belongs to kinds that implement InfraMachinePool."
            )
            place.error_at_key("pool-machine-kind", message, hint, "machineKind")


def _machines(pool: DraftKind, draft: Draft, place: Place) -> None:
    known, chosen = draft.machine_kinds, pool.machine_kind
    if chosen is None:
        if known:
            message = (
                f"the kind of the machines of {shown(pool.name)} is ambiguous: {listed(known)}"
            )
            hint = f"Choose one, such as `machineKind: {known[0]}`."
            place.error("pool-machine-kind", message, hint, "features")
        return
    if chosen not in known:
        message = f"{shown(chosen)} is not a kind that implements InfraMachine"
        place.error("pool-machine-kind", message, did_you_mean(chosen, known), "machineKind")
        return
    (machine,) = (kind.spec for kind in draft.kinds if kind.name == chosen)
    _fields(pool.spec, chosen, machine, place)


def _fields(pool: KindSpec, name: str, machine: KindSpec, place: Place) -> None:
    own = pool.spec or {}
    for field, described in (machine.spec or {}).items():
        here = own.get(field)
        if here is None:
            if is_required(described):
                message = f"{shown(name)} requires {shown(field)}, but the pool has no such field"
                hint = f"Add {shown(field)} to the spec of the pool as in {shown(name)}."
                _at_spec(place, "pool-field-missing", message, hint, pool)
            continue
        if is_required(described) and not is_required(here) and "default" not in plain(here):
            message = f"{shown(name)} requires {shown(field)}, but the pool does not"
            place.error_at_key(
                "pool-field-missing", message, "Require it here as well.", "spec", field
            )
        if _meaning(plain(here)) != _meaning(plain(described)):
            message = f"{shown(field)} has another schema in {shown(name)}"
            hint = (
                "Write the same schema, or use another name: machines receive the value unchanged."
            )
            place.error_at_key("pool-field-differs", message, hint, "spec", field)


def _at_spec(place: Place, id: str, message: str, hint: str, pool: KindSpec) -> None:
    below = ("spec",) if pool.spec is not None else ()
    place.error_at_key(id, message, hint, *below)


def _meaning(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without descriptions and transition rules."""
    kept = {key: value for key, value in schema.items() if key not in _FOR_PEOPLE}
    rules = kept.pop("x-kubernetes-validations", ())
    lasting = [rule for rule in rules if not is_transition(rule["rule"])]
    if lasting:
        kept["x-kubernetes-validations"] = lasting
    if "properties" in kept:
        kept["properties"] = {name: _meaning(below) for name, below in kept["properties"].items()}
    for part in ("items", "additionalProperties"):
        if part in kept:
            kept[part] = _meaning(kept[part])
    return kept
