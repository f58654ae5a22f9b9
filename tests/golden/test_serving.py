"""Deployments, Services and admission of all cases: clients reach webhooks that are served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith_runtime.manager import WEBHOOK_CHECK
from tests.golden.cases import cases

FOLDERS = {
    folder.parent: case
    for case in cases()
    for folder in sorted(case.expected.glob("**/manager"))
    if (folder / "manager.yaml").is_file()
}


def read(file: Path) -> list[dict[str, Any]]:
    """Return the objects of a manifest; none if it does not exist."""
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8"))) if file.is_file() else []


def name(folder: Path) -> str:
    return f"{FOLDERS[folder].name}/{folder.relative_to(FOLDERS[folder].expected)}"


configs = pytest.mark.parametrize("folder", FOLDERS, ids=name)


def container(folder: Path) -> dict[str, Any]:
    (deployment,) = read(folder / "manager/manager.yaml")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


@configs
def test_a_pod_is_ready_as_soon_as_it_serves_webhooks(folder: Path) -> None:
    """It waits neither for the caches, which need conversions, nor for the cloud."""
    path = container(folder)["readinessProbe"]["httpGet"]["path"]
    has_webhooks = (folder / "webhook/service.yaml").is_file()
    assert path == (f"/readyz/{WEBHOOK_CHECK}" if has_webhooks else "/readyz")


@configs
def test_services_publish_no_pod_that_does_not_listen(folder: Path) -> None:
    for service in read(folder / "webhook/service.yaml"):
        assert "publishNotReadyAddresses" not in service["spec"]


@configs
def test_autoscalers_may_evict_the_pod(folder: Path) -> None:
    """By default they keep a node with a pod that has local storage; here it holds nothing."""
    (deployment,) = read(folder / "manager/manager.yaml")
    template = deployment["spec"]["template"]
    local = [each["name"] for each in template["spec"]["volumes"] if "emptyDir" in each]
    mark = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
    assert template["metadata"]["annotations"][mark].split(",") == local


@configs
def test_the_manager_does_not_admit_its_own_updates(folder: Path) -> None:
    """In each namespace into which it is installed."""
    (kustomization,) = read(folder / "default/kustomization.yaml")
    (account,) = read(folder / "rbac/service_account.yaml")
    user = f"{kustomization['namePrefix']}{account['metadata']['name']}"
    for configuration in read(folder / "webhook/manifests.yaml"):
        for webhook in configuration["webhooks"]:
            found = {each["name"]: each["expression"] for each in webhook["matchConditions"]}
            assert f"!request.userInfo.username.endsWith(':{user}')" in found["no-manager"]


@configs
def test_probes_allow_for_a_slow_start_and_a_busy_node(folder: Path) -> None:
    found = container(folder)
    startup = found["startupProbe"]
    assert startup["periodSeconds"] * startup["failureThreshold"] >= 60
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert found[probe]["timeoutSeconds"] >= 5
