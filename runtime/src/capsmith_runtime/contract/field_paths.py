"""Fields of the contract that a CRD has at other paths than the contract.

Each pair has a field's path in the contract, and its path in the CRD.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from capsmith_runtime.contract.model import Object

FieldPaths = tuple[tuple[str, str], ...]
"""Pairs such as ``("spec.machineTemplate.infrastructureRef", "spec.infrastructureTemplate")``."""


def read_at_contract_paths(obj: Object, paths: FieldPaths) -> Object:
    """Return ``obj`` with each field at its path in the contract; ``obj`` is not modified."""
    return _move(obj, paths)


def write_at_own_paths(obj: Object, paths: FieldPaths) -> Object:
    """Return ``obj`` with each field at its path in the CRD; ``obj`` is not modified."""
    return _move(obj, ((own, contract) for contract, own in paths))


def _move(obj: Object, pairs: Iterable[tuple[str, str]]) -> Object:
    """Return a copy in which the value at the second path of each pair is at the first one."""
    values = []
    for target, source in pairs:
        found: list[Any] = []
        obj = _without(obj, source.split("."), found)
        values += [(target, value) for value in found]
    for target, value in values:
        obj = _with(obj, target.split("."), value)
    return obj


def _without(obj: Object, steps: list[str], found: list[Any]) -> Object:
    """Return a copy without the value at ``steps``, which is appended to ``found``.

    Objects that become empty are left out, too.
    """
    first, *rest = steps
    if first not in obj:
        return obj
    others = {name: value for name, value in obj.items() if name != first}
    if not rest:
        found.append(obj[first])
        return others
    below = obj[first]
    if not isinstance(below, Mapping):
        return obj
    left = _without(below, rest, found)
    if left is below:
        return obj
    return {**obj, first: left} if left else others


def _with(obj: Object, steps: list[str], value: Any) -> Object:
    first, *rest = steps
    if not rest:
        return {**obj, first: value}
    below = obj.get(first)
    return {**obj, first: _with(below if isinstance(below, Mapping) else {}, rest, value)}
