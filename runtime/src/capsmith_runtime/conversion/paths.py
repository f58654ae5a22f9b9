"""Values in nested mappings by their path."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any, Final

Data = dict[str, Any]
Path = tuple[str, ...]


class _Missing:
    """The type of MISSING, which marks an absent value; null is a value."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_EVERYWHERE: Final[Set[Path]] = {
    *((), ("spec",), ("status",), ("spec", "template"), ("spec", "template", "spec"))
}


def get_value(data: Data, path: Path) -> Any:
    """Return the value at ``path``, or MISSING."""
    value: Any = data
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return MISSING
        value = value[key]
    return value


def pop_value(data: Data, path: Path, retained: Set[Path]) -> Any:
    """Remove and return the value at ``path``; return MISSING if there is none.

    Parents that become empty are removed as well, except those in ``retained``.
    """
    *above, key = path
    parent = get_value(data, tuple(above))
    if not isinstance(parent, dict) or key not in parent:
        return MISSING
    value = parent.pop(key)
    if not parent and tuple(above) not in retained:
        pop_value(data, tuple(above), retained)
    return value


def retained_parents(paths: Iterable[Path]) -> frozenset[Path]:
    """Return all parents of ``paths``, and those that every object or template has."""
    above = {path[:length] for path in paths for length in range(len(path))}
    return frozenset(above | _EVERYWHERE)


def set_value(data: Data, path: Path, value: Any) -> None:
    """Set the value at ``path``, unless it is MISSING or a parent is not an object."""
    if value is MISSING:
        return
    *above, last = path
    parent: Any = data
    for key in above:
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            return
    parent[last] = value
