"""The kit of a provider whose hosts have credentials, and whose clusters have none."""

from __future__ import annotations

import yaml

from capsmith_runtime.testing.conformance import conformance_tests
from tests.runtime.scenarios.providers import provider_of

PROVIDER = provider_of(
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
