"""Named checks: functions with typed parameters, by the names that rules use."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from capsmith.conformance.bundle import Bundle
from capsmith.conformance.crds import Crd, CrdVersion
from capsmith.conformance.manifests import Manifest
from capsmith.contract.model import Contract, Rule


@dataclass(frozen=True, slots=True)
class Problem:
    """A breach: the object it is in, and what was found and expected."""

    manifest: Manifest
    message: str
    line: int = 0
    """Of the file, where it is better known than where the object begins."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a check looks at, and for which rule."""

    bundle: Bundle
    contract: Contract
    rule: Rule

    def crds(self) -> tuple[Crd, ...]:
        """The CRDs whose roles the rule applies to."""
        return tuple(crd for crd in self.bundle.crds if crd.role in self.rule.applies_to)

    def concerned(self) -> bool:
        """Whether there is a kind of the rule's roles, or the rule names none."""
        roles = set(self.rule.applies_to) & set(self.contract.types)
        return not roles or bool(self.crds())

    def versions(self) -> Iterable[tuple[Crd, CrdVersion]]:
        """Those CRDs with their versions that follow the contract."""
        for crd in self.crds():
            for version in crd.versions_of(self.contract.label):
                yield crd, version


@dataclass(frozen=True, slots=True)
class NoParams:
    """For checks that take none."""


CheckFunction = Callable[..., Iterable[Problem]]


@dataclass(frozen=True, slots=True)
class NamedCheck:
    """A registered check."""

    name: str
    run: CheckFunction
    params: type[Any]


_CHECKS: dict[str, NamedCheck] = {}


def check(name: str, params: type[Any] = NoParams) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function under the name that rules use; ``params`` is a dataclass.

    Raises ValueError when the name is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if name in _CHECKS:
            raise ValueError(f"two checks are called {name}")
        _CHECKS[name] = NamedCheck(name, function, params)
        return function

    return register


def registered() -> Mapping[str, NamedCheck]:
    """All checks by name; the modules of the package have to be imported first."""
    return _CHECKS


def bind(params: type[Any], data: Mapping[str, Any]) -> Any:
    """The parameters of a rule as the check's own dataclass.

    Raises ValueError for a missing, unknown or wrongly typed one.
    """
    hints = typing.get_type_hints(params)
    known = {field.name: field for field in fields(params)}
    unknown = set(data) - set(known)
    if unknown:
        raise ValueError(f"unknown parameters {', '.join(sorted(unknown))}")
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in data:
            values[name] = _typed(name, data[name], hints[name])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"parameter {name} is missing")
    return params(**values)


def _typed(name: str, value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint) or hint
    if origin is tuple and isinstance(value, list):
        inner = typing.get_args(hint)[0]
        return tuple(_typed(name, item, inner) for item in value)
    if hasattr(origin, "__dataclass_fields__") and isinstance(value, Mapping):
        return bind(origin, value)
    if not isinstance(value, Mapping if origin is Mapping else origin):
        raise ValueError(f"parameter {name} is {value!r}, not {hint}")
    return value
