"""Create kubeconfig files with embedded certificates, which can be stored in Secrets."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from capsmith.clusters.processes.kube import JSON, KubeClient

_NAME = "capsmith"
_TOKEN_SECONDS = 30 * 24 * 3600


def render_admin_kubeconfig(server: str, ca: Path, cert: Path, key: Path) -> str:
    """Return a kubeconfig that authenticates with a client certificate."""
    return _render(
        server, ca, {"client-certificate-data": _encoded(cert), "client-key-data": _encoded(key)}
    )


def render_token_kubeconfig(server: str, ca: Path, token: str) -> str:
    """Return a kubeconfig that authenticates with a bearer token."""
    return _render(server, ca, {"token": token})


def request_token(client: KubeClient, namespace: str, name: str) -> str:
    """Return a new token for an existing ServiceAccount, valid for a month."""
    path = client.path("v1", "ServiceAccount", name, namespace, "token")
    request: JSON = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    return str(client.request("POST", path, body=request)["status"]["token"])


def _render(server: str, ca: Path, user: dict[str, str]) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": _NAME,
                "cluster": {"server": server, "certificate-authority-data": _encoded(ca)},
            }
        ],
        "users": [{"name": _NAME, "user": user}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    return yaml.safe_dump(config, sort_keys=False)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
