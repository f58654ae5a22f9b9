"""What is generated for all combinations of admission webhooks, and its own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.golden.cases import EXAMPLES, Case, generated
from tests.repositories import run_module


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a repository with all combinations of webhooks, and a manager of two sections."""
    folder = tmp_path_factory.mktemp("admission")
    spec = yaml.safe_load((EXAMPLES / "acme" / "provider.yaml").read_text())
    spec["infrastructure"]["AcmeMachine"]["webhooks"] = {"validation": True, "defaulting": True}
    spec["infrastructure"]["AcmeCluster"]["webhooks"] = {"validation": True, "templates": False}
    pool = {"implements": "GlobalIPPool", "webhooks": {"validation": True, "deletion": True}}
    spec["ipam"] = {"AcmePool": pool}
    spec["addon"] = {"AcmeAgent": {"implements": "Addon", "webhooks": {"defaulting": True}}}
    spec["components"] = {"infrastructure": ["infrastructure", "addon"]}
    (folder / "provider.yaml").write_text(yaml.safe_dump(spec))
    generated(Case("webhooks", folder / "provider.yaml"), folder / "repository")
    return folder / "repository"


def test_every_combination_passes(repository: Path) -> None:
    done = run_module(
        repository, "pytest", "-v", "-p", "no:cacheprovider", "-k", "Admission or webhook"
    )
    assert done.returncode == 0, done.stdout
    assert "TestAdmissionValidation::test_samples_and_templates_are_accepted" in done.stdout
    assert "tests/test_acme_pool_webhook.py" in done.stdout
    lint = run_module(repository, "ruff", "check", ".")
    assert lint.returncode == 0, lint.stdout


def test_rules_name_templates_versions_and_scopes(repository: Path) -> None:
    rules = {
        ".".join(webhook["name"].split(".")[:2]): webhook["rules"][0]
        for document in yaml.safe_load_all(
            (repository / "config/webhook/manifests.yaml").read_text()
        )
        for webhook in document["webhooks"]
    }

    assert rules["validation.acmecluster"]["resources"] == ["acmeclusters"]
    assert rules["validation.acmemachine"]["resources"] == ["acmemachines", "acmemachinetemplates"]
    assert rules["defaulting.acmemachine"]["operations"] == ["CREATE", "UPDATE"]
    assert rules["defaulting.acmeagent"]["resources"] == ["acmeagents"]
    assert "defaulting.acmecluster" not in rules
    (pool,) = yaml.safe_load_all((repository / "ipam/config/webhook/manifests.yaml").read_text())
    (webhook,) = pool["webhooks"]
    assert webhook["rules"][0]["scope"] == "Cluster"
    assert webhook["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    conditions = [each["name"] for each in webhook["matchConditions"]]
    assert conditions == ["spec-changes", "no-manager", "no-move"]
