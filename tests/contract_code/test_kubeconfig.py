"""Kubeconfigs that are written, and those of others that are read or refused."""

from __future__ import annotations

import base64
from typing import Any

import pytest
import yaml
from capsmith_generated.contract.model import Endpoint
from capsmith_generated.workload.kubeconfig import (
    Access,
    KubeconfigError,
    read,
    server_of,
    written,
)

ACCESS = Access(
    server="https://10.0.0.1:6443", authority=b"authority", certificate=b"certificate", key=b"key"
)


def changed(**changes: Any) -> bytes:
    """A kubeconfig with other parts: of the cluster, of the user, or at the top."""
    document = yaml.safe_load(written("one", ACCESS))
    document["clusters"][0]["cluster"] |= changes.pop("cluster", {})
    document["users"][0]["user"] |= changes.pop("user", {})
    return yaml.safe_dump(document | changes).encode()


def test_what_is_written_is_read_again() -> None:
    others = (
        Access(server="https://[::1]:443", token="t"),
        Access(server="https://a.test", insecure=True, username="u", password="p"),
    )

    for access in (ACCESS, *others):
        assert read(written("one", access)) == access
        assert written("one", access) == written("one", access)


def test_people_find_their_way() -> None:
    document = yaml.safe_load(written("one", ACCESS))

    assert document["current-context"] == "one-admin@one"
    assert document["contexts"] == [
        {"name": "one-admin@one", "context": {"cluster": "one", "user": "one-admin"}}
    ]
    assert base64.b64decode(document["users"][0]["user"]["client-key-data"]) == b"key"


def test_addresses_of_version_six_stand_in_brackets() -> None:
    assert server_of(Endpoint("fd00::1", 6443)) == "https://[fd00::1]:6443"
    assert server_of(Endpoint("api.test", 443)) == "https://api.test:443"


@pytest.mark.parametrize(
    "name",
    ["certificate-authority", "proxy-url", "tls-server-name"],
)
def test_nothing_outside_is_used_for_the_cluster(name: str) -> None:
    with pytest.raises(KubeconfigError, match=f"not supported: {name}$"):
        read(changed(cluster={name: "/etc/passwd"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}),
        ("auth-provider", {"name": "other"}),
        ("client-certificate", "/etc/passwd"),
        ("client-key", "/etc/passwd"),
        ("tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ("as", "somebody"),
    ],
)
def test_nothing_outside_is_used_for_the_user(name: str, value: object) -> None:
    """A tenant's Secret must not make a manager run programs or give its own token away."""
    with pytest.raises(KubeconfigError, match=f"not supported: {name}$"):
        read(changed(user={name: value}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no kubeconfig"),
        (b"[", "no kubeconfig"),
        (b"\xff\xfe\x00", "no kubeconfig"),
        (b"just text", "no kubeconfig"),
        (b"{}", "no context"),
        (changed(**{"current-context": "other"}), "no context"),
        (changed(clusters=[]), "no cluster"),
        (changed(users=[]), "no user"),
        (changed(cluster={"server": "file:///etc/passwd"}), "no URL"),
        (changed(user={"client-key-data": "%"}), "client-key-data is not base64"),
        (changed(user={"token": ["secret"]}), "no kubeconfig"),
    ],
)
def test_what_is_broken_is_said_without_showing_it(content: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message) as raised:
        read(content)

    assert "secret" not in str(raised.value)
