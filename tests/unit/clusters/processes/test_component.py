"""What a components file says about the provider that clusterctl installs from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.processes.component import ReleaseComponent

_RBAC = "rbac.authorization.k8s.io/v1"


def _role(name: str, resource: str, *verbs: str) -> dict[str, Any]:
    rule = {"apiGroups": ["example.com"], "resources": [resource], "verbs": list(verbs)}
    return {"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}


def _binding(role: str, **subject: str) -> dict[str, Any]:
    return {
        "apiVersion": _RBAC,
        "kind": "ClusterRoleBinding",
        "metadata": {"name": role},
        "roleRef": {"apiGroup": _RBAC.partition("/")[0], "kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }


def test_the_manager_lists_what_is_granted_to_itself(tmp_path: Path) -> None:
    """Roles of other providers' managers are bound by the release as well."""
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "manager", "namespace": "acme-system"},
        "spec": {"template": {"spec": {"serviceAccountName": "acme-manager"}}},
    }
    other = "system:serviceaccount:other-system:other-manager"
    objects = [
        deployment,
        _role("own", "acmemachines", "list", "watch"),
        _binding("own", kind="ServiceAccount", name="acme-manager", namespace="acme-system"),
        _role("seen", "acmeclusters", "get"),
        _binding("seen", kind="ServiceAccount", name="acme-manager", namespace="acme-system"),
        _role("user", "acmecontrolplanes", "list"),
        _binding("user", kind="User", name=other),
        _role("account", "acmeconfigs", "list"),
        _binding("account", kind="ServiceAccount", name="other-manager", namespace="acme-system"),
    ]
    path = tmp_path / "control-plane-components.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")

    assert ReleaseComponent(tmp_path, "control-plane").listed == [("example.com", "acmemachines")]
