"""The kit of a provider whose hosts have credentials, and whose clusters have none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import yaml

from capsmith_runtime.component import Component
from capsmith_runtime.infrastructure.controllers import InfrastructureControllers
from capsmith_runtime.resource import (
    Credentials,
    Deleted,
    ResourceDeleteScope,
    ResourceReconciler,
    ResourceScope,
    ResourceState,
    SessionFactory,
)
from capsmith_runtime.resource.controllers import ResourceControllers
from capsmith_runtime.testing.conformance import conformance_tests
from tests.runtime.scenarios.providers import provider_of

_GENERATED = provider_of(
    "clusters-without-identities",
    """\
capsmith: 1
name: quarry
repository: https://github.com/quarry/cluster-api-provider-quarry
contracts: [v1beta2]
releases: {v0.1: v1beta2}
infrastructure:
  QuarryCluster:
    implements: InfraCluster
    features: {credentials: false}
  QuarryMachine:
    implements: InfraMachine
  QuarryHost:
    implements: Resource
credentials: {kind: QuarryIdentity, namespaced: true}
""",
)


class Tokens(SessionFactory[str]):
    """Opens a session with the token of an identity, and fails without one."""

    def open(self, credentials: Credentials) -> str:
        return credentials["token"]

    def close(self, session: str) -> None:
        pass


class LoggedInHosts(ResourceReconciler[Any]):
    """Creates nothing, but needs the credentials of the host."""

    session_factory = Tokens

    def reconcile_normal(self, resource: ResourceScope[Any]) -> ResourceState:
        assert resource.session(Tokens)
        return ResourceState()

    def reconcile_delete(self, resource: ResourceDeleteScope[Any]) -> Deleted:
        return Deleted()


class Hosts:
    """The test double of the simulated cloud, with hosts that exist before their objects."""

    def __init__(self, folder: Path) -> None:
        assert _GENERATED.infrastructure is not None
        self._double: Any = _GENERATED.infrastructure(folder)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._double, name)

    def resources(self) -> list[str]:
        raise NotImplementedError("a host exists before its object")


def _log_in(component: Component) -> Component:
    """Return the component with hosts that need credentials."""
    (group,) = component.groups
    assert isinstance(group, InfrastructureControllers)
    (hosts,) = group.additional
    assert isinstance(hosts, ResourceControllers)
    kinds = tuple(replace(each, reconciler=LoggedInHosts) for each in hosts.kinds)
    return replace(component, groups=(replace(group, additional=(replace(hosts, kinds=kinds),)),))


PROVIDER = replace(
    _GENERATED,
    components={name: _log_in(each) for name, each in _GENERATED.components.items()},
    infrastructure=cast(Any, Hosts),
)
globals().update(conformance_tests(PROVIDER))


def test_no_file_mentions_an_identity_of_a_cluster() -> None:
    texts = {
        path.relative_to(PROVIDER.repository).as_posix(): path.read_text(encoding="utf-8")
        for folder in ("config/samples", "config/crd/bases", "templates", "config/admission")
        for path in (PROVIDER.repository / folder).glob("*.yaml")
    }

    assert {name for name, text in texts.items() if "identityRef" in text} == {
        "config/crd/bases/infrastructure.cluster.x-k8s.io_quarryhosts.yaml",
        "config/samples/quarry_host.yaml",
    }


def test_each_kustomization_has_its_files() -> None:
    for path in PROVIDER.repository.glob("config/*/kustomization.yaml"):
        resources = yaml.safe_load(path.read_text(encoding="utf-8")).get("resources") or []
        assert [name for name in resources if not (path.parent / name).exists()] == [], path


def test_a_policy_without_kinds_is_left_out() -> None:
    policies = [
        document
        for path in (PROVIDER.repository / "config" / "admission").glob("*.yaml")
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
        if document.get("kind") == "ValidatingAdmissionPolicy"
    ]
    rules = [
        rule for each in policies for rule in each["spec"]["matchConstraints"]["resourceRules"]
    ]
    assert all(rule["resources"] for rule in rules)
