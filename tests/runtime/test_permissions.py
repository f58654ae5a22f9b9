"""What ``permissions.yaml`` declares is what the library's code requests exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import pytest

from capsmith.commands.build import load_runtime_library
from capsmith.commands.load import load
from capsmith.output.rbac import (
    Permission,
    grant_rule,
    list_manager_permissions,
    list_namespace_permissions,
)
from capsmith.output.rbac.model import DeclaredRule
from capsmith.output.slices import SLICE_OF_COMPONENT, list_slices
from capsmith.provider.model import Component, Provider
from tests.golden.cases import cases
from tests.runtime.support.requests import VERBS, Request, Use, recorded, recorded_scenarios, uses

KITS = {
    "pools": "TestInfraCluster or TestMachineTemplates",
    "two-contracts": "TestAddress or TestBootstrapData or TestMachineTemplates or TestOrphaned"
    " or (TestInfrastructureFaults and paused)",
}
"""Examples, and the conformance tests of them that send what the scenarios of the library do not.

Together they send every kind of request.
"""
ONLY_OF_KITS = "homelab"
"""The example that has the name of another one, with which scenarios run."""
DECLARED = load_runtime_library().permissions
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Run:
    """One component's manager in all tests of one example."""

    provider: Provider
    component: Component
    requests: tuple[Request, ...]

    @property
    def folders(self) -> tuple[str, ...]:
        return list_slices(self.component)

    @cached_property
    def own_namespace(self) -> tuple[Permission, ...]:
        return list_namespace_permissions(self.provider, self.component, DECLARED)

    @cached_property
    def everywhere(self) -> tuple[Permission, ...]:
        # What the author's code needs besides is no excuse for what the library forgot.
        bare = self.provider._replace(rbac=())
        return list_manager_permissions(bare, self.component, DECLARED)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    of_scenarios = recorded_scenarios(tmp_path_factory.mktemp("scenarios"))
    found = []
    for case in cases():
        requests = [] if case.name == ONLY_OF_KITS else list(of_scenarios)
        if case.name in KITS:
            requests += recorded(case, KITS[case.name], tmp_path_factory.mktemp(case.name))
        provider = load(case.spec).provider
        assert provider is not None
        for component in provider.components:
            if own := tuple(each for each in requests if each.label == component.label):
                found.append(Run(provider, component, own))
    return found


def test_no_request_lacks_a_permission(runs: list[Run]) -> None:
    lacking = {
        (run.component.label, request.verb, request.group, request.resource, request.name)
        for run in runs
        for request in run.requests
        if not _is_allowed(request, run.everywhere)
        and not (request.is_own_namespace and _is_allowed(request, run.own_namespace))
    }
    assert lacking == set()


def test_each_permission_is_needed(runs: list[Run]) -> None:
    """Verbs that no request has stand under ``uncalled``, with a reason, and no others do."""
    wrong = {}
    for folder, role, rule in _rules():
        needed = {(request.verb, request.resource) for request in _sent(folder, role, rule, runs)}
        needed |= {
            (request.verb, request.resource)
            for sender, request in _constant_requests()
            if sender == folder and _is_about(rule, request)
        }
        unneeded = set(_unneeded(rule, needed))
        if unneeded != set(rule.uncalled):
            wrong[folder, role, rule.reason] = (sorted(unneeded), sorted(rule.uncalled))
    assert wrong == {}, "(what no request has, what is listed under uncalled)"


def _owner(function: str) -> str:
    """Return the class of a method, or an empty string for a function of the module."""
    return function.rpartition(".")[0].partition(".")[0]


def test_each_use_of_the_client_is_compared(runs: list[Run]) -> None:
    """A request that no scenario sends could lack a permission unseen."""
    seen = {(each.module, each.function, each.method) for run in runs for each in run.requests}
    owners = {(module, _owner(function), method) for module, function, method in seen}
    unseen = [
        use
        for use in uses()
        if use.resource is None and (use.module, use.function, use.method) not in seen
        # A method that is kept for later is called somewhere in its class, or by a function beside
        # it.
        and (use.is_call or (use.module, _owner(use.function), use.method) not in owners)
    ]
    assert unseen == []


def test_kinds_that_are_constants_are_declared() -> None:
    """The source alone shows these, whether a scenario sends them or not."""
    found = _constant_requests()
    by_folder = defaultdict(list)
    for folder, _, rule in _rules():
        by_folder[folder].append(rule)
    undeclared = {
        (folder, request.verb, request.group, request.resource)
        for folder, request in found
        if not any(
            request.verb in rule.verbs and _is_about(rule, request)
            for rule in by_folder[folder] + by_folder["reconcile"]
        )
    }
    assert len(found) > 20
    assert undeclared == set()


def _rules() -> Iterator[tuple[str, str, DeclaredRule]]:
    """The rules about managers; those that core's managers aggregate are about its requests."""
    for folder, declared in DECLARED.items():
        yield from ((folder, "manager", rule) for rule in declared.manager)
        yield from ((folder, "namespace", rule) for rule in declared.namespace)


def _sent(folder: str, role: str, rule: DeclaredRule, runs: Iterable[Run]) -> Iterator[Request]:
    """The recorded requests that a rule is needed for."""
    for run in runs:
        if folder in SLICE_OF_COMPONENT.values() and folder not in run.folders:
            continue
        permissions = grant_rule(rule, run.provider, run.component)
        for request in run.requests:
            if not _may_need(folder, request):
                continue
            own = request.is_own_namespace and _is_allowed(request, run.own_namespace)
            if own is (role == "namespace") and _is_allowed(request, permissions):
                yield request


def _may_need(folder: str, request: Request) -> bool:
    """Return whether a request can be the reason for a rule of this folder.

    Folders that declare rules for their own requests do not justify those of others.
    """
    sender = request.module.partition(".")[0]
    shared = ("kube", "reconcile")
    return folder in (sender, *shared) or sender in shared or sender not in DECLARED


def _unneeded(rule: DeclaredRule, needed: set[tuple[str, str]]) -> Iterator[str]:
    """Verbs that are needed for none of the rule's resources; else the verb with the resource."""
    for verb in rule.verbs:
        used = {resource for of, resource in needed if of == verb}
        if not used:
            yield verb
        elif rule.resources != ("*",):
            yield from (f"{verb} {each}" for each in rule.resources if each not in used)


@cache
def _constant_requests() -> tuple[tuple[str, Request], ...]:
    """Return the requests on kinds that are constants, with the folder that sends them.

    They are cached, because finding them parses the whole library.
    """
    found = []
    for use in uses():
        if use.resource is not None:
            resource = use.resource.plural + ("/status" if use.method == "patch_status" else "")
            for verb in VERBS[use.method]:
                request = _request_of(use, verb, use.resource.group, resource)
                found.append((use.module.partition(".")[0], request))
    return tuple(found)


def _request_of(use: Use, verb: str, group: str, resource: str) -> Request:
    return Request("", verb, group, resource, "", False, use.module, use.function, use.method)


def _is_about(rule: DeclaredRule, request: Request) -> bool:
    return request.group in rule.groups and request.resource in rule.resources


def _is_allowed(request: Request, permissions: Iterable[Permission]) -> bool:
    return any(
        request.verb in permission.verbs
        and request.group in permission.groups
        and (request.resource in permission.resources or "*" in permission.resources)
        and (not permission.names or request.name in permission.names)
        for permission in permissions
    )
