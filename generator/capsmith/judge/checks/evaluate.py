"""Run the checks of a contract's rules on manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from capsmith.contract.model import Contract, Rule
from capsmith.findings import Finding, Location, Severity, sort_findings
from capsmith.judge.checks.registry import Context, NoParams, Violation, bind, list_checks
from capsmith.manifests.bundle import Bundle, split
from capsmith.manifests.kustomize import build
from capsmith.manifests.parse import Manifest

_NO_ROLES: Mapping[str, str] = {}


def evaluate_manifests(
    manifests: Sequence[Manifest], contract: Contract, roles: Mapping[str, str] = _NO_ROLES
) -> tuple[Finding, ...]:
    """Return a finding for each place where a provider's manifests violate ``contract``.

    Accepts source trees, built components and release folders; in a source tree, the names,
    namespaces and labels of kustomizations are applied.  ``roles`` assigns roles by CRD name; all
    other roles are guessed from kinds.
    """
    found = (
        finding
        for bundle in split(build(manifests), roles)
        for rule in contract.rules.values()
        if rule.check is not None
        for finding in _of_rule(rule, bundle, contract)
    )
    # A file that several providers of a repository share is reported once.
    return sort_findings(list(dict.fromkeys(found)))


def _of_rule(rule: Rule, bundle: Bundle, contract: Contract) -> Iterator[Finding]:
    for problem in find_violations(rule, bundle, contract):
        yield _finding(rule, problem)


def find_violations(rule: Rule, bundle: Bundle, contract: Contract) -> Iterable[Violation]:
    """Return the places where a bundle violates one rule; empty for a rule without a check.

    Raises ValueError if the rule's parameters do not match its check.
    """
    if rule.check is None:
        return ()
    named = list_checks()[rule.check.name]
    params = bind(named.params, rule.check.params)
    context = Context(bundle, contract, rule)
    arguments = () if named.params is NoParams else (params,)
    return named.run(context, *arguments)


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
