"""What a components file says about the provider that clusterctl installs from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.processes.component import ProviderRelease, ReleaseComponent, parse_objects
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.manifests.variables import substitute

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


def test_quoted_variables_stay_strings(tmp_path: Path) -> None:
    """Where webhooks call this computer, values have the types that clusterctl would install."""
    text = """\
apiVersion: v1
kind: Namespace
metadata: {name: capa-system, labels: {a: "${FLAG:=true}"}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: manager}
spec:
  replicas: ${REPLICAS:=2}
  template:
    spec:
      containers:
      - env: [{name: FLAG, value: "${FLAG:=true}"}, {name: ONE, value: '${ONE:=1}'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: hook, annotations: {b: "${FLAG:=true}"}}
webhooks:
- name: a.example.com
  timeoutSeconds: ${TIMEOUT:=5}
  clientConfig: {service: {name: hook, path: /validate}}
"""
    component = ReleaseComponent(tmp_path, "infrastructure")
    (tmp_path / component.file).write_text(text)
    (tmp_path / "metadata.yaml").write_text("kind: Metadata\n")
    repository = ClusterctlRepository(tmp_path / "repository")
    ProviderRelease(tmp_path, "v0.1.0").add_to(repository, "Y2E=")
    (stored,) = repository.base.rglob(component.file)
    installed = substitute(stored.read_text())
    namespace, deployment, hook = parse_objects(installed, stored)
    assert namespace["metadata"]["labels"] == {"a": "true"}
    assert deployment["spec"]["replicas"] == 2
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert [each["value"] for each in container["env"]] == ["true", "1"]
    assert hook["metadata"]["annotations"] == {"b": "true"}
    assert hook["webhooks"][0]["timeoutSeconds"] == 5
    assert hook["webhooks"][0]["clientConfig"]["url"] == "https://127.0.0.1:9443/validate"
