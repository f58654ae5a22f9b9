"""Kubeconfigs that are rendered, and kubeconfigs of users that are parsed or refused."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest
import yaml

from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.workload.kubeconfig import Access, KubeconfigError, parse, render, server_url

ACCESS = Access(
    server="https://10.0.0.1:6443", authority=b"authority", certificate=b"certificate", key=b"key"
)


def changed(**changes: Any) -> bytes:
    """Return a kubeconfig with changes to the cluster, to the user, or at the top level."""
    document = yaml.safe_load(render("one", ACCESS))
    document["clusters"][0]["cluster"] |= changes.pop("cluster", {})
    document["users"][0]["user"] |= changes.pop("user", {})
    return yaml.safe_dump(document | changes).encode()


def test_a_rendered_kubeconfig_can_be_parsed() -> None:
    others = (
        Access(server="https://[::1]:443", token="t"),
        Access(server="https://a.test", insecure=True, username="u", password="p"),
    )

    for access in (ACCESS, *others):
        assert parse(render("one", access)) == access
        assert render("one", access) == render("one", access)


def test_the_kubeconfig_has_one_named_context() -> None:
    document = yaml.safe_load(render("one", ACCESS))

    assert document["current-context"] == "one-admin@one"
    assert document["contexts"] == [
        {"name": "one-admin@one", "context": {"cluster": "one", "user": "one-admin"}}
    ]
    assert base64.b64decode(document["users"][0]["user"]["client-key-data"]) == b"key"


def test_ipv6_addresses_are_in_brackets() -> None:
    assert server_url(Endpoint("fd00::1", 6443)) == "https://[fd00::1]:6443"
    assert server_url(Endpoint("api.test", 443)) == "https://api.test:443"


@pytest.mark.parametrize(
    "name",
    ["certificate-authority", "proxy-url", "tls-server-name"],
)
def test_references_outside_the_cluster_entry_are_refused(name: str) -> None:
    with pytest.raises(KubeconfigError, match=f"unsupported settings: {name}$"):
        parse(changed(cluster={name: "/etc/passwd"}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("exec", {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh"}),
        ("auth-provider", {"name": "other"}),
        ("client-certificate", "/etc/passwd"),
        ("client-key", "/etc/passwd"),
        ("tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ("as", "somebody"),
        ("as-uid", "1"),
        ("as-groups", ["system:masters"]),
        ("as-user-extra", {"scopes": ["all"]}),
    ],
)
def test_references_outside_the_user_entry_are_refused(name: str, value: object) -> None:
    """A tenant's Secret must not make the manager run programs or reveal its own token."""
    with pytest.raises(KubeconfigError, match=f"unsupported settings: {name}$"):
        parse(changed(user={name: value}))


@pytest.mark.parametrize(
    ("part", "name", "limit"),
    [
        ("cluster", "certificate-authority-data", 262144),
        ("user", "client-certificate-data", 65536),
        ("user", "client-key-data", 4096),
    ],
)
def test_certificates_and_keys_that_would_block_the_event_loop_are_refused(
    part: str, name: str, limit: int
) -> None:
    def content(size: int) -> bytes:
        return changed(**{part: {name: base64.b64encode(size * b"a").decode()}})

    assert parse(content(limit))
    with pytest.raises(KubeconfigError, match=f"its {name} has more than {limit} bytes"):
        parse(content(limit + 1))


def merge_bomb(levels: int) -> bytes:
    """Return a mapping that merges another one twice, which merges another one twice, and so on."""
    lines = [
        f"m{number}: &m{number} {{<<: [*m{number - 1}, *m{number - 1}]}}"
        for number in range(1, levels)
    ]
    return "\n".join(["m0: &m0 {a: 1}", *lines]).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # Each of these stopped the manager: the process ended, or the event loop was blocked.
        (100_000 * b"[", "nested too deeply"),
        (100_000 * b"{a: ", "nested too deeply"),
        (50_000 * b"- ", "nested too deeply"),
        (100_000 * b"- a\n", "too large"),
        (merge_bomb(60), "anchors, aliases or tags"),
        (b"clusters: !!timestamp a", "anchors, aliases or tags"),
        (b"kind: 2001-99-99", "not a kubeconfig"),
        (b"kind: " + 5_000 * b"9", "not a kubeconfig"),
    ],
    ids=lambda value: value[:20].decode() if isinstance(value, bytes) else None,
)
def test_a_hostile_kubeconfig_does_not_stop_the_manager(content: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        parse(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a kubeconfig"),
        (b"[", "not a kubeconfig"),
        (b"\xff\xfe\x00", "not a kubeconfig"),
        (b"just text", "not a kubeconfig"),
        (b"{}", "no context"),
        (changed(**{"current-context": "other"}), "no context"),
        (changed(clusters=[]), "no cluster"),
        (changed(users=[]), "no user"),
        (changed(cluster={"server": "file:///etc/passwd"}), "not a URL"),
        (changed(user={"client-key-data": "%"}), "client-key-data is not base64"),
        (changed(user={"token": ["secret"]}), "not a kubeconfig"),
    ],
)
def test_errors_do_not_show_the_content(content: bytes, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message) as raised:
        parse(content)

    assert "secret" not in str(raised.value)


def test_data_may_have_line_breaks() -> None:
    broken = base64.encodebytes(b"authority" * 20).decode().replace("\n", "\r\n", 1)
    assert parse(changed(cluster={"certificate-authority-data": broken})).authority == (
        b"authority" * 20
    )


def test_data_after_padding_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="not base64"):
        parse(changed(cluster={"certificate-authority-data": "YQ==YQ=="}))


def test_no_credentials_are_sent_without_tls() -> None:
    """As in client-go: everyone on the network could read them."""
    content = changed(cluster={"server": "http://10.0.0.1"}, user={"token": "secret"})
    assert parse(content) == Access(server="http://10.0.0.1")


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"client-key-data": ""}, "a client certificate without a key"),
        ({"token": "t", "username": "u"}, "both a token and a username"),
        ({"token": "t", "password": "p"}, "both a token and a username"),
    ],
)
def test_credentials_that_client_go_refuses_are_refused(user: Any, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        parse(changed(user=user))


@pytest.mark.parametrize("section", ["clusters", "contexts", "users"])
def test_repeated_names_are_refused(section: str) -> None:
    entries = yaml.safe_load(changed())[section]
    with pytest.raises(KubeconfigError, match="more than one"):
        parse(changed(**{section: [*entries, *copy.deepcopy(entries)]}))


def test_entries_that_nothing_refers_to_may_be_empty() -> None:
    entries = yaml.safe_load(changed())["users"]
    assert parse(changed(users=[*entries, {"name": "other"}])) == ACCESS
