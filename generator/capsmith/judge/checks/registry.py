"""Register checks, which are functions with typed parameters, under the names used in rules."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from enum import EnumType
from functools import cache
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from capsmith.contract.model import Contract, Rule
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation found by a check: the object, and how it differs from the required state."""

    manifest: Manifest
    message: str
    line: int = 0
    """Line in the file if known more precisely than the object's first line, else 0."""
    path: Path = ()
    """Keys and list indexes that lead to the violation inside the object."""
    harmless: bool = False
    """Whether this violation breaks nothing, unlike other violations of the same rule."""
    when: str = ""
    """Condition under which the effect occurs; empty if the rule's own condition applies.

    ``{core}`` is replaced by the releases of core that are checked.
    """
    only_contract: str = ""
    """Contract version, if only core releases that support no other show the effect; else empty."""


T = TypeVar("T")


@dataclass(slots=True)
class SharedResults:
    """Results for one bundle that are the same for every contract version."""

    violations: dict[tuple[object, ...], tuple[Violation, ...]] = field(default_factory=dict)
    """Violations by the name and parameters of a check that does not depend on the contract."""
    parts: dict[Hashable, Any] = field(default_factory=dict)
    """Parts of the results of the other checks."""


@dataclass(frozen=True, slots=True)
class Context:
    """The input of a check: a bundle, and the rule to check."""

    bundle: Bundle
    contract: Contract
    rule: Rule
    shared: SharedResults = field(default_factory=SharedResults)

    def share(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return what ``compute`` returned for the first contract version.

        ``key`` is unique to what is computed, among all checks of the bundle.
        """
        parts = self.shared.parts
        if key not in parts:
            parts[key] = compute()
        result: T = parts[key]
        return result

    def crds(self) -> tuple[Crd, ...]:
        """Return the CRDs that have one of the rule's roles."""
        return tuple(
            crd
            for crd in self.bundle.crds
            if crd.role in self.rule.applies_to and self.bundle.is_judged(crd)
        )

    def concerned(self) -> bool:
        """Return whether the rule applies to the bundle.

        A rule that is limited to certain roles does not apply if the bundle has no CRD with one of
        them.
        """
        roles = set(self.rule.applies_to) & set(self.contract.types)
        return not roles or bool(self.crds())

    def versions(self) -> Iterable[tuple[Crd, CrdVersion]]:
        """Yield (CRD, version) for each API version of the rule's CRDs under the contract."""
        for crd in self.crds():
            for version in crd.versions_of(self.contract.label):
                yield crd, version


@dataclass(frozen=True, slots=True)
class NoParams:
    """The parameter class of a check that takes no parameters."""


CheckFunction = Callable[..., Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class NamedCheck:
    """A check function under its registered name, with the class of its parameters."""

    name: str
    run: CheckFunction
    params: type[Any]
    is_shared: bool
    """Whether a bundle's result is the same for all contract versions."""


_CHECKS: dict[str, NamedCheck] = {}


def check(
    name: str, params: type[Any] = NoParams, *, is_shared: bool = False
) -> Callable[[CheckFunction], CheckFunction]:
    """Return a decorator that registers a check under ``name``.

    ``params`` is the dataclass for the check's parameters.  Set ``is_shared`` if the check reads
    only the bundle and core's kinds, and nothing that depends on the contract version: roles do
    not, but the choice of API versions does.  Raises ValueError if the name is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if name in _CHECKS:
            raise ValueError(f"duplicate check {name}")
        _CHECKS[name] = NamedCheck(name, function, params, is_shared)
        return function

    return register


def list_checks() -> Mapping[str, NamedCheck]:
    """Return all registered checks by name.

    Import this package's modules first: importing them registers their checks.
    """
    return _CHECKS


def bind(params: type[Any], data: Mapping[str, Any]) -> Any:
    """Return a rule's parameters as an instance of ``params``, the dataclass of the rule's check.

    Raises ValueError for a missing, unknown or wrongly typed parameter.
    """
    return _instantiate(params, data, "")


# Not with pydantic, because building its validators for all checks takes a quarter of a run of
# `verify`.
def _instantiate(params: Any, data: Mapping[str, Any], path: str) -> Any:
    """Return an instance of a dataclass; ``path`` leads to ``data``, and is empty at the top."""
    types = _read_types(params)
    if unknown := sorted(data.keys() - types.keys()):
        raise ValueError(f"{path + ' has ' if path else ''}unknown keys {', '.join(unknown)}")
    values = {
        name: _convert(kind, data[name], f"{path}.{name}" if path else name)
        for name, kind in types.items()
        if name in data
    }
    for each in fields(params):
        if each.name not in data and each.default is MISSING and each.default_factory is MISSING:
            raise ValueError(f"{f'{path}.{each.name}' if path else each.name} is missing")
    return params(**values)


def _convert(kind: Any, value: Any, path: str) -> Any:
    """Return ``value``, which YAML gives, as an instance of the annotated type ``kind``."""
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_convert(get_args(kind)[0], item, path) for item in value)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, Mapping):
        return _instantiate(kind, value, path)
    if isinstance(kind, EnumType) and value in kind._value2member_map_:
        return kind(value)
    # Compared by exact type, because True is an int.
    if type(value) is kind or (get_origin(kind) is Mapping and isinstance(value, Mapping)):
        return value
    raise ValueError(f"{path} is {value!r}, which is not of type {getattr(kind, '__name__', kind)}")


@cache
def _read_types(params: Any) -> Mapping[str, Any]:
    return get_type_hints(params)
