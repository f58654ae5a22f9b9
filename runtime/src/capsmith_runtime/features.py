"""Feature gates, which operators set with ``--feature-gates``.

A gate exists as soon as the module that creates it has been imported.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
_gates: Final[dict[str, FeatureGate]] = {}


class UnknownFeatureGateError(Exception):
    """Raised if a value is set for a feature gate that does not exist."""


class FeatureGate:
    """A part of a provider that operators turn on or off.

    Create it once, at the top level of a module that your reconcilers import.
    """

    def __init__(self, name: str, *, default: bool = False, description: str = "") -> None:
        """Declare a gate.

        ``name`` is in CamelCase, such as ``FastBoot``. ``--help`` shows ``description`` if the gate
        is declared in provider.yaml. Raises ValueError for another form of the name, or if another
        gate already has it.
        """
        if not _NAME.fullmatch(name) or name in _gates:
            raise ValueError(f"not in CamelCase, or declared twice: {name!r}")
        self.name = name
        self.default = default
        self.description = description
        self._value = default
        _gates[name] = self

    @property
    def is_enabled(self) -> bool:
        """Return whether the gate is turned on; this does not change while a manager runs."""
        return self._value

    @contextlib.contextmanager
    def set_for_test(self, enabled: bool) -> Iterator[None]:
        """Return a context manager that sets the gate for the duration of its block; for tests."""
        before, self._value = self._value, enabled
        try:
            yield
        finally:
            self._value = before


def list_feature_gates() -> list[FeatureGate]:
    """Return the declared gates, sorted by name."""
    return [_gates[name] for name in sorted(_gates)]


def describe_feature_gates() -> str:
    """Return a sentence about each declared gate and its default, or "" if there are no gates."""
    return " ".join(
        f"{gate.name}=true|false (default={str(gate.default).lower()}) {gate.description}".strip()
        for gate in list_feature_gates()
    )


def find_unknown_gates(names: Mapping[str, bool]) -> list[str]:
    """Return the sorted names that do not belong to any declared gate."""
    return sorted(names.keys() - _gates.keys())


def set_feature_gates(values: Mapping[str, bool]) -> None:
    """Set feature gates by name; gates that are not named keep their values.

    If there is no gate with one of the names, raises UnknownFeatureGateError and changes nothing.
    """
    unknown = find_unknown_gates(values)
    if unknown:
        known = ", ".join(sorted(_gates)) or "none"
        raise UnknownFeatureGateError(f"unknown: {', '.join(unknown)}; known: {known}")
    for name, value in values.items():
        _gates[name]._value = value


def parse_feature_gates(text: str) -> dict[str, bool]:
    """Return the values in a string such as ``A=true,B=false``, keyed by gate.

    An empty string yields an empty mapping. Raises ValueError for any other format.
    """
    values: dict[str, bool] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.strip().partition("=")
        if not _NAME.fullmatch(name) or value not in ("true", "false") or name in values:
            raise ValueError(f"not Name=true or Name=false, each once: {part!r}")
        values[name] = value == "true"
    return values
