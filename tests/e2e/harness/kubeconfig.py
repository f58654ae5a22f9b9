"""Kubeconfig files, self-contained: no paths inside, so that they may become Secrets."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from .kube import JSON, KubeClient


def admin_kubeconfig(server: str, ca: Path, cert: Path, key: Path) -> str:
    """Access by client certificate."""
    return _render(
        server, ca, {"client-certificate-data": _encoded(cert), "client-key-data": _encoded(key)}
    )


def token_kubeconfig(server: str, ca: Path, token: str) -> str:
    """Access by bearer token."""
    return _render(server, ca, {"token": token})


def service_account_token(client: KubeClient, namespace: str, name: str) -> str:
    """A token of an existing ServiceAccount, by the TokenRequest API."""
    path = client.path("v1", "ServiceAccount", name, namespace, "token")
    request: JSON = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 48 * 3600},
    }
    return str(client.request("POST", path, body=request)["status"]["token"])


def _render(server: str, ca: Path, user: dict[str, str]) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "e2e",
                "cluster": {"server": server, "certificate-authority-data": _encoded(ca)},
            }
        ],
        "users": [{"name": "e2e", "user": user}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    return yaml.safe_dump(config, sort_keys=False)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
