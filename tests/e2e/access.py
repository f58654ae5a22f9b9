"""Compare the requests of Cluster API's managers with the table of their accesses.

Each request for a kind of another provider must match a row for the release of core, whichever test
caused it. Rows that a test must prove are in the audit log at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import yaml

from capsmith import resources
from capsmith.clusters.processes.audit import ResourceAttributes, count_requests
from capsmith.clusters.processes.cluster import ManagementCluster
from capsmith.clusters.processes.kube import JSON
from capsmith.contract.access import CoreManager, load_access, rank_core_series
from capsmith.contract.model import AuditedTest
from capsmith.manifests.crds import guess_role
from tests.e2e.harness.provider import ProviderUnderTest
from tests.e2e.releases import ALL

_TABLE = load_access(resources.schemas())
_PROVIDER = "cluster.x-k8s.io/provider"
_OWN = {
    "core": "cluster-api",
    "kubeadm-control-plane": "control-plane-kubeadm",
    "kubeadm-bootstrap": "bootstrap-kubeadm",
}
"""The label of each manager's own CRDs, about which the table says nothing."""
_CRD = "CustomResourceDefinition"
_SECRET = "Secret"
_RESOURCES = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): _CRD,
    ("", "secrets"): _SECRET,
}


class Use(NamedTuple):
    """A verb that a manager uses on a kind, with the names in the table."""

    manager: str
    kind: str
    """With the subresource: `InfraMachine/status`."""
    verb: str

    def __str__(self) -> str:
        return f"{self.manager}: {self.verb} {self.kind}"


def check_requests(
    provider: ProviderUnderTest, management: ManagementCluster, series: Iterable[str]
) -> None:
    """Fail if any request matches no row for any of these series of core."""
    rows = {
        Use(row.manager.name, kind, verb)
        for each in series
        for row in _TABLE.of(each)
        for kind in row.kinds
        for verb in row.verbs
    }
    found = _uses(provider, management, allowed=False)
    # Secrets have many purposes, of which few concern providers.
    unknown = sorted(str(each) for each in found if each not in rows and each.kind != _SECRET)
    assert not unknown, f"not in schemas/contracts/common/access.yaml: {unknown}"


def check_shown(
    provider: ProviderUnderTest, management: ManagementCluster, shown: AuditedTest
) -> None:
    """Print the numbers of requests; fail for rows that the test must prove but does not."""
    found = _uses(provider, management, allowed=True)
    for use, count in sorted(found.items()):
        print(f"{management.series} {use}: {count}")
    missing = [
        str(use)
        for row in _TABLE.of(management.series)
        if row.shown is shown
        for kind in row.kinds
        for verb in row.verbs
        if (use := Use(row.manager.name, kind, verb)) not in found
    ]
    assert not missing, f"in schemas/contracts/common/access.yaml, but not requested: {missing}"
    _check_wildcards(management, {use.manager for use in found})


def series_between(first: str, last: str) -> list[str]:
    """Return all series of core from one to another, in any order."""
    low, high = sorted(map(rank_core_series, (first, last)))
    return [each for each in ALL if low <= rank_core_series(each) <= high]


def _check_wildcards(management: ManagementCluster, names: set[str]) -> None:
    """The managers' own roles allow all kinds of the groups that the table says, and no others."""
    groups = {group for manager in _TABLE.managers for group in manager.groups}
    for manager in _TABLE.managers:
        if manager.name in names:
            found = {each for each in groups if management.may(manager.user, "delete", each, "any")}
            assert found == set(manager.groups), manager.name


def _uses(
    provider: ProviderUnderTest, management: ManagementCluster, *, allowed: bool
) -> Counter[Use]:
    managers = {manager.user: manager for manager in _TABLE.managers}
    kinds = _kinds(management.client.list("apiextensions.k8s.io/v1", _CRD), _roles(provider))
    found: Counter[Use] = Counter()
    for request, count in count_requests(management.apiserver.audit_log, managers).items():
        manager = managers[request.user]
        kind = _kind(manager, request.access, request.name, kinds)
        if kind and (request.is_allowed or not allowed):
            found[Use(manager.name, kind, request.access.verb)] += count
    return found


class _Kind(NamedTuple):
    role: str
    crd: str
    """The name of the CRD."""
    provider: str
    """The label of the CRD."""


def _kinds(crds: list[JSON], known: Mapping[str, str]) -> dict[tuple[str, str], _Kind]:
    """The kinds of all providers by group and plural."""
    specs = [crd["spec"] for crd in crds]
    pairs = {(spec["group"], spec["names"]["kind"]) for spec in specs}
    found = {}
    for crd in crds:
        spec = crd["spec"]
        group, kind = spec["group"], spec["names"]["kind"]
        role = known.get(kind) or guess_role(group, kind, spec["scope"], pairs)
        label = crd["metadata"].get("labels", {}).get(_PROVIDER, "")
        found[group, spec["names"]["plural"]] = _Kind(role, crd["metadata"]["name"], label)
    return found


def _roles(provider: ProviderUnderTest) -> dict[str, str]:
    """The roles of the provider's kinds, as its description says: names do not tell all.

    Empty where only a release is left of the repository.
    """
    description = provider.repository / "provider.yaml"
    described = yaml.safe_load(description.read_text()) if description.is_file() else {}
    sections = [each for each in described.values() if isinstance(each, dict)]
    kinds = {
        kind: str(spec["implements"])
        for section in sections
        for kind, spec in section.items()
        if isinstance(spec, dict) and "implements" in spec
    }
    return kinds | {f"{kind}Template": f"{role}Template" for kind, role in kinds.items()}


def _kind(
    manager: CoreManager,
    access: ResourceAttributes,
    name: str,
    kinds: Mapping[tuple[str, str], _Kind],
) -> str:
    """What the table calls the target of a request; empty if it says nothing about it."""
    plural, _, sub = access.resource.partition("/")
    own = _OWN[manager.name]
    special = _RESOURCES.get((access.group, plural))
    if special == _CRD and any(
        each.crd == name and each.provider == own for each in kinds.values()
    ):
        return ""
    found = kinds.get((access.group, plural))
    kind = special or (found.role if found is not None and found.provider != own else "")
    return f"{kind}/{sub}" if kind and sub else kind
