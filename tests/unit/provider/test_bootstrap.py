"""What a bootstrap section brings: a component, its kinds, and the permissions of its manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capsmith.provider.model import Component, Provider, Role
from capsmith.provider_yaml.parse import parse
from capsmith.resolving.resolve import resolve
from tests.invalid.cases import CONTRACTS
from tests.unit.output.test_rbac import verbs
from tests.unit.provider.permissions import (
    aggregate_permissions,
    manager_permissions,
    namespace_permissions,
)

GROUP = "bootstrap.cluster.x-k8s.io"


@pytest.fixture
def made() -> Provider:
    description: dict[str, Any] = {
        "capsmith": 1,
        "name": "acme",
        "repository": "https://github.com/acme/cluster-api-provider-acme",
        "contracts": ["v1beta2"],
        "releases": {"v0.1": "v1beta2"},
        "bootstrap": {"AcmeConfig": {"implements": "BootstrapConfig"}},
    }
    parsed = parse(json.dumps(description), "provider.yaml")
    assert parsed.spec is not None
    assert parsed.document is not None
    found = resolve(parsed.spec, parsed.document, CONTRACTS)
    assert found.provider is not None, found.findings
    return found.provider


@pytest.fixture
def component(made: Provider) -> Component:
    (only,) = made.components
    return only


def test_a_kind_comes_with_its_template(component: Component) -> None:
    """Proves: BC-07, CC-51."""
    assert [(each.kind, each.role) for each in component.resources] == [
        ("AcmeConfig", Role.BOOTSTRAP_CONFIG),
        ("AcmeConfigTemplate", Role.BOOTSTRAP_CONFIG_TEMPLATE),
    ]
    assert component.label == "bootstrap-acme"
    assert not component.immutable_templates, "templates of configurations may change (BC-08)"


def test_the_manager_keeps_secrets_and_the_lock_and_reads_core(
    made: Provider, component: Component
) -> None:
    """Proves: RB-04, RB-06, RB-07."""
    found = manager_permissions(made, component)

    assert verbs(found, GROUP, "acmeconfigs") == {"list", "watch", "patch"}
    assert verbs(found, GROUP, "acmeconfigs/finalizers") == {"update"}
    assert verbs(found, GROUP, "acmeconfigtemplates") == set()
    for resource in ("clusters", "machines"):
        assert verbs(found, "cluster.x-k8s.io", resource) == {"get", "list", "watch"}
    assert verbs(found, "cluster.x-k8s.io", "machinepools") == {"list", "watch"}
    # By name only: a user who may list Secrets reads all of them.
    for resource in ("secrets", "configmaps"):
        assert verbs(found, "", resource) == {"get", "create", "patch", "delete"}
    assert verbs(namespace_permissions(made, component), "", "secrets") == set()


def test_core_makes_and_deletes_configurations(component: Component) -> None:
    """Proves: RB-03, RB-05."""
    found = aggregate_permissions(component)

    everything = {"create", "delete", "get", "list", "patch", "update", "watch"}
    for plural in ("acmeconfigs", "acmeconfigtemplates"):
        assert verbs(found, GROUP, plural) == everything
    assert verbs(found, GROUP, "acmeconfigs/finalizers") == {"update"}
