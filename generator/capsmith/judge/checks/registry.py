"""Register checks, which are functions with typed parameters, under the names that rules use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import EnumType
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from capsmith.contract.model import Contract, Rule
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation found by a check: the object, and its difference from the required state."""

    manifest: Manifest
    message: str
    line: int = 0
    """Line in the file, if known more precisely than the object's first line; otherwise 0."""
    path: Path = ()
    """Keys and list indexes that lead to the violation in the object."""
    harmless: bool = False
    """Whether this violation breaks nothing, even though other violations of the rule do."""
    when: str = ""
    """Condition under which the effect occurs; empty if the rule's own condition applies.

    ``{core}`` stands for the releases of core that are judged.
    """
    only_contract: str = ""
    """Contract version, if the effect occurs only in releases of core that support no other;
    otherwise empty."""


@dataclass(frozen=True, slots=True)
class Context:
    """The input of a check: a bundle, and the rule to check."""

    bundle: Bundle
    contract: Contract
    rule: Rule

    def crds(self) -> tuple[Crd, ...]:
        """Return the CRDs that have one of the rule's roles."""
        return tuple(
            crd
            for crd in self.bundle.crds
            if crd.role in self.rule.applies_to and self.bundle.is_judged(crd)
        )

    def concerned(self) -> bool:
        """Return whether the rule applies to the bundle.

        It does not if the rule is limited to roles for which the bundle has no CRD.
        """
        roles = set(self.rule.applies_to) & set(self.contract.types)
        return not roles or bool(self.crds())

    def versions(self) -> Iterable[tuple[Crd, CrdVersion]]:
        """Yield the CRDs that the rule applies to, each with each version under the contract."""
        for crd in self.crds():
            for version in crd.versions_of(self.contract.label):
                yield crd, version


@dataclass(frozen=True, slots=True)
class NoParams:
    """The parameters of a check that takes none."""


CheckFunction = Callable[..., Iterable[Violation]]


@dataclass(frozen=True, slots=True)
class NamedCheck:
    """A registered check."""

    name: str
    run: CheckFunction
    params: type[Any]
    is_shared: bool
    """Whether the result is the same for each contract under which a bundle is judged."""


_CHECKS: dict[str, NamedCheck] = {}


def check(
    name: str, params: type[Any] = NoParams, *, is_shared: bool = False
) -> Callable[[CheckFunction], CheckFunction]:
    """Return a decorator that registers a check under ``name``.

    ``params`` is the dataclass for the check's parameters.  A check is ``is_shared`` if it reads
    nothing of its context but the bundle, and nothing of that which depends on the contract: the
    roles are the same for all contracts, but which versions core uses is not.  Raises ValueError if
    the name is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if name in _CHECKS:
            raise ValueError(f"duplicate check {name}")
        _CHECKS[name] = NamedCheck(name, function, params, is_shared)
        return function

    return register


def list_checks() -> Mapping[str, NamedCheck]:
    """Return all registered checks by name.

    Import the modules of this package first, because importing them registers their checks.
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
