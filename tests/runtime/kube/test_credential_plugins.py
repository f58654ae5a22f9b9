"""Credential plugins and token files whose content is not what it should be."""

from __future__ import annotations

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from capsmith_runtime.errors import UnreachableError
from capsmith_runtime.kube.client import EVERYTHING, NamespacedName
from tests.runtime.support.following import WIDGET, connected


def plugin(*command: str) -> dict[str, Any]:
    name, *arguments = command
    version = "client.authentication.k8s.io/v1beta1"
    return {"exec": {"apiVersion": version, "command": name, "args": arguments}}


@pytest.mark.parametrize(
    "user",
    [
        plugin("echo", "a warning"),
        plugin("echo", "[]"),
        plugin("echo", "{}"),
        plugin("echo", '{"status": {"clientCertificateData": "..."}}'),
        plugin("echo", '{"status": null}'),
        plugin("sh", "-c", r"printf '\377' >&2; exit 1"),
        plugin("false"),
        {"tokenFile": "binary"},
    ],
    ids=str,
)
async def test_requests_fail_as_without_an_answer(user: dict[str, Any], tmp_path: Path) -> None:
    """Any other exception would end the informers and the leader election, and so the manager."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    if "tokenFile" in user:
        user = {"tokenFile": str(tmp_path / "binary")}
    kubeconfig = tmp_path / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
    }
    kubeconfig.write_text(json.dumps(config))

    async with connected(kubeconfig) as client:
        with pytest.raises(UnreachableError):
            await client.get(WIDGET, NamespacedName("default", "one"))
        async with aclosing(client.watch(WIDGET, EVERYTHING, resource_version="1")) as events:
            with pytest.raises(UnreachableError):
                await anext(events)
