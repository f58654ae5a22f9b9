"""Run the checks for a contract version's rules on manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from capsmith.contract.model import Check, Contract, Rule
from capsmith.findings import Finding, Location, Severity, sort_findings
from capsmith.judge.checks.registry import (
    Context,
    NamedCheck,
    NoParams,
    SharedResults,
    Violation,
    bind,
    list_checks,
)
from capsmith.manifests.bundle import Bundle, split
from capsmith.manifests.kustomize import build
from capsmith.manifests.parse import Manifest

_NO_ROLES: Mapping[str, str] = {}
_KEPT_RULES: Final = 1024
"""Number of rules whose parameters are kept, more than all contracts have."""


def evaluate_manifests(
    manifests: Sequence[Manifest], contract: Contract, roles: Mapping[str, str] = _NO_ROLES
) -> tuple[Finding, ...]:
    """Return a finding for each place where a provider's manifests violate ``contract``.

    Accepts source trees, built components and release folders; in a source tree, the names,
    namespaces and labels set by kustomizations are applied.  ``roles`` assigns roles by CRD name;
    all other roles are guessed from kinds.
    """
    found = (
        finding
        for bundle in split(build(manifests), roles)
        for rule in contract.rules.values()
        if rule.check is not None
        for finding in _of_rule(rule, bundle, contract)
    )
    # A file shared by several providers of a repository is reported once.
    return sort_findings(list(dict.fromkeys(found)))


def _of_rule(rule: Rule, bundle: Bundle, contract: Contract) -> Iterator[Finding]:
    for problem in find_violations(rule, bundle, contract):
        yield _finding(rule, problem)


def find_violations(
    rule: Rule, bundle: Bundle, contract: Contract, shared: SharedResults | None = None
) -> Iterable[Violation]:
    """Return the places where a bundle violates one rule; empty for a rule without a check.

    ``shared`` keeps results for the same bundle, to be reused for other contract versions. Raises
    ValueError if the rule's parameters do not match its check.
    """
    if rule.check is None:
        return ()
    named, arguments = _bind(_ByIdentity(rule.check))
    if shared is None:
        return named.run(Context(bundle, contract, rule), *arguments)
    context = Context(bundle, contract, rule, shared)
    if not named.is_shared:
        return named.run(context, *arguments)
    key = (named.name, *arguments)
    if key not in shared.violations:
        shared.violations[key] = tuple(named.run(context, *arguments))
    return shared.violations[key]


class _ByIdentity:
    """A rule's check as a key of a cache: its parameters are not hashable, and never change."""

    __slots__ = ("check",)

    def __init__(self, check: Check) -> None:
        self.check = check

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByIdentity) and other.check is self.check

    def __hash__(self) -> int:
        return id(self.check)


# Each release is judged by the same rules.
@lru_cache(_KEPT_RULES)
def _bind(key: _ByIdentity) -> tuple[NamedCheck, tuple[Any, ...]]:
    """Return the check of a rule, and its arguments after the context."""
    named = list_checks()[key.check.name]
    params = bind(named.params, key.check.params)
    return named, () if named.params is NoParams else (params,)


def _finding(rule: Rule, problem: Violation) -> Finding:
    location = problem.manifest.location
    if problem.line:
        location = Location(location.file, problem.line, 1)
    return Finding(
        id=rule.id,
        message=problem.message,
        location=location,
        severity=Severity(rule.weight.value),
        hint=rule.hint,
        link=rule.source,
    )
