"""Register checks, which are functions with typed parameters, under the names that rules use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from capsmith.contract.model import Contract, Rule
from capsmith.contract.reading import describe_errors
from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd, CrdVersion
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation that a check found: the object, and how it differs from the required state."""

    manifest: Manifest
    message: str
    line: int = 0
    """Line in the file, if known more precisely than the line on which the object begins; otherwise
    0."""
    path: Path = ()
    """Keys and list indexes that lead to the place in the object."""
    harmless: bool = False
    """Whether this violation breaks nothing, even though other violations of the rule do."""
    when: str = ""
    """Condition under which the effect occurs; empty if the rule's own condition applies.

    ``{core}`` stands for the releases of core that are judged.
    """
    only_contract: str = ""
    """Contract version, if the effect only occurs in releases of core that support no other;
    otherwise empty."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a check gets: a bundle, and the rule to check."""

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

        It does unless it is limited to roles of which the bundle has no CRD.
        """
        roles = set(self.rule.applies_to) & set(self.contract.types)
        return not roles or bool(self.crds())

    def versions(self) -> Iterable[tuple[Crd, CrdVersion]]:
        """Yield each CRD that the rule applies to, with each version that follows the contract."""
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


_CHECKS: dict[str, NamedCheck] = {}


def check(name: str, params: type[Any] = NoParams) -> Callable[[CheckFunction], CheckFunction]:
    """Return a decorator that registers a check under ``name``.

    ``params`` is the dataclass for the check's parameters.  Raises ValueError if the name is taken.
    """

    def register(function: CheckFunction) -> CheckFunction:
        if name in _CHECKS:
            raise ValueError(f"duplicate check {name}")
        _CHECKS[name] = NamedCheck(name, function, params)
        return function

    return register


def list_checks() -> Mapping[str, NamedCheck]:
    """Return all registered checks by name.

    Import the modules of this package first, because importing them registers their checks.
    """
    return _CHECKS


def bind(params: Callable[..., Any], data: Mapping[str, Any]) -> Any:
    """Return a rule's parameters as an instance of ``params``, the dataclass of the rule's check.

    Raises ValueError for a missing, unknown or wrongly typed parameter.
    """
    from pydantic import ValidationError

    named = {"parameters": data}
    try:
        return _adapter(params).validate_python(named)["parameters"]
    except ValidationError as error:
        raise ValueError("; ".join(describe_errors(error, named))) from None


@cache
def _adapter(params: Any) -> TypeAdapter[Any]:
    """Return a validator for a mapping with ``params`` as its only value."""
    from pydantic import ConfigDict, TypeAdapter

    # A mapping, because pydantic takes no configuration for a dataclass that it did not make.
    named: Any = GenericAlias(dict, (str, params))
    return TypeAdapter(named, config=ConfigDict(extra="forbid"))
