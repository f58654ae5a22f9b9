"""Pools with Machines: what their machines are, and whether the pool says enough of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capsmith.contract.model import Contract
from capsmith.provider import derive
from capsmith.provider.pools import MACHINES, machine_kinds, pool_machine_kind
from capsmith.spec.place import Place
from capsmith.spec.plain import is_required, plain
from capsmith.spec.quote import did_you_mean, listed, shown
from capsmith.spec.rules import is_transition

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import KindSpec

_FOR_PEOPLE = ("title", "description", "example")


def check_pools(spec: ProviderSpec, contracts: Mapping[str, Contract], top: Place) -> None:
    """Ids ``pool-machine-kind``, ``pool-field-missing`` and ``pool-field-differs`` (MP-07, MP-11).

    A pool with Machines makes objects of another kind: what that kind requires has to be a field
    of the pool, and a field that both have has to mean the same.
    """
    known = [contracts[version] for version in spec.contracts if version in contracts]
    for section, kind, described in spec.kinds():
        place = top.at(section, kind)
        pool = described.implements == "InfraMachinePool"
        if pool and MACHINES in derive.features(described, known):
            _machines(kind, described, spec, place)
        elif getattr(described, "machine_kind", None) is not None:
            message = f"{shown(kind)} is no pool with Machines"
            hint = (
                "switch the feature `machines` on, or leave this out"
                if pool
                else "leave it out: it belongs to kinds that implement InfraMachinePool"
            )
            place.error_at_key("pool-machine-kind", message, hint, "machineKind")


def _machines(kind: str, pool: KindSpec, spec: ProviderSpec, place: Place) -> None:
    known, chosen = machine_kinds(spec), pool_machine_kind(pool, spec)
    if chosen is None:
        if known:
            message = f"the machines of {shown(kind)} could be {listed(known)}"
            hint = f"say which: `machineKind: {known[0]}`"
            place.error("pool-machine-kind", message, hint, "features")
        return
    if chosen not in known:
        message = f"{shown(chosen)} is no kind that implements InfraMachine"
        place.error("pool-machine-kind", message, did_you_mean(chosen, known), "machineKind")
        return
    (machine,) = (found for _, name, found in spec.kinds() if name == chosen)
    _fields(pool, chosen, machine, place)


def _fields(pool: KindSpec, name: str, machine: KindSpec, place: Place) -> None:
    own = pool.spec or {}
    for field, described in (machine.spec or {}).items():
        here = own.get(field)
        if here is None:
            if is_required(described):
                message = f"{shown(name)} requires {shown(field)}, and the pool has no such field"
                hint = f"add {shown(field)} to the spec of the pool, as it is in {shown(name)}"
                _at_spec(place, "pool-field-missing", message, hint, pool)
            continue
        if is_required(described) and not is_required(here) and "default" not in plain(here):
            message = f"{shown(name)} requires {shown(field)}, and the pool does not"
            place.error_at_key("pool-field-missing", message, "require it here too", "spec", field)
        if _meaning(plain(here)) != _meaning(plain(described)):
            message = f"{shown(field)} has another schema in {shown(name)}"
            hint = "machines get the value as it is: write the same schema, or use another name"
            place.error_at_key("pool-field-differs", message, hint, "spec", field)


def _at_spec(place: Place, id: str, message: str, hint: str, pool: KindSpec) -> None:
    below = ("spec",) if pool.spec is not None else ()
    place.error_at_key(id, message, hint, *below)


def _meaning(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without words for people, and without rules on how a value may change."""
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
