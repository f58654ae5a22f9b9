"""A user's kubeconfig: the server and credentials of its current context."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.errors import UnreadableInput

_PRIVATE = 0o600


def client_of(kubeconfig: Path, folder: Path) -> KubeClient:
    """Return a client of the current context; certificates and keys are copied into a folder.

    Raises UnreadableInput (``kubeconfig``) if the file cannot be read, or if its user authenticates
    in another way than by token or client certificate.
    """
    try:
        config = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        context = _named(config, "contexts", config["current-context"])["context"]
        cluster = _named(config, "clusters", context["cluster"])["cluster"]
        user = _named(config, "users", context["user"])["user"] or {}
        credentials = _credentials(cluster, user, kubeconfig.parent, folder)
        return KubeClient(str(cluster["server"]), credentials)
    except (OSError, yaml.YAMLError, KeyError, TypeError, ValueError, binascii.Error) as error:
        raise UnreadableInput(
            "kubeconfig",
            f"the current context cannot be used: {error}",
            file=str(kubeconfig),
            hint="Specify a kubeconfig with a token or a client certificate.",
        ) from error


def _credentials(
    cluster: dict[str, Any], user: dict[str, Any], beside: Path, folder: Path
) -> Credentials:
    authority = _file(cluster, "certificate-authority", beside, folder)
    if authority is None:
        raise ValueError("the cluster has no certificate authority")
    token = user.get("token")
    if not token and "tokenFile" in user:
        token = (beside / user["tokenFile"]).read_text().strip()
    cert = _file(user, "client-certificate", beside, folder)
    key = _file(user, "client-key", beside, folder)
    if not token and (cert is None or key is None):
        raise ValueError("the user has neither a token nor a client certificate")
    return Credentials(authority, cert, key, token)


def _named(config: dict[str, Any], key: str, name: str) -> dict[str, Any]:
    for each in config[key]:
        if each["name"] == name:
            return dict(each)
    raise KeyError(f"{key} has no {name}")


def _file(entry: dict[str, Any], key: str, beside: Path, folder: Path) -> Path | None:
    if f"{key}-data" in entry:
        path = folder / key
        path.touch(_PRIVATE)
        path.write_bytes(base64.b64decode(entry[f"{key}-data"], validate=True))
        return path
    return beside / entry[key] if key in entry else None
