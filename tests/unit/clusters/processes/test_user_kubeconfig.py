"""A user's kubeconfig is read as kubectl reads it, and what is not supported is refused."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from capsmith.clusters.processes.user_kubeconfig import connect, find_kubeconfigs, read_access
from capsmith.errors import UnreadableInput
from tests.verify.places import run
from tests.verify.releases import crd

AUTHORITY = trustme.CA()
CLIENT = AUTHORITY.issue_cert("client")
SERVER = "https://127.0.0.1:6443"
_COMMAND = {
    "apiVersion": "client.authentication.k8s.io/v1",
    "command": "echo",
    "interactiveMode": "Never",
    "provideClusterInfo": True,
}


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def config(
    cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None, name: str = "one"
) -> dict[str, Any]:
    authority = encoded(AUTHORITY.cert_pem.bytes())
    default = {"server": SERVER, "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": default | (cluster or {})}],
        "users": [{"name": name, "user": user or {"token": "secret"}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(yaml.safe_dump(content))
    return path


def refusal(path: Path, context: str = "") -> str:
    with pytest.raises(UnreadableInput) as caught:
        read_access((path,), context)
    return f"{caught.value.finding.message} {caught.value.finding.hint}"


def test_files_are_those_of_kubectl(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", {}), write(tmp_path / "two", {})
    environment = {"HOME": str(tmp_path), "KUBECONFIG": f"{one}:{tmp_path / 'no'}:{two}"}
    assert find_kubeconfigs(None, environment) == (one, two)
    assert find_kubeconfigs(two, environment) == (two,)
    assert find_kubeconfigs(None, {"HOME": str(tmp_path)}) == (tmp_path / ".kube" / "config",)


def test_first_entry_of_a_name_counts(tmp_path: Path) -> None:
    one = write(tmp_path / "one", config({"server": "https://one"}))
    two = write(tmp_path / "two", config({"server": "https://two"}))
    other = write(tmp_path / "other", config({"server": "https://other"}, name="other"))
    assert read_access((one, two)).server == "https://one"
    assert read_access((two, one, other), "other").server == "https://other"


def test_token_and_data_are_used(tmp_path: Path) -> None:
    access = read_access((write(tmp_path / "config", config()),))
    with connect(access) as client:
        ca, token = client.credentials.ca, client.credentials.token
        assert ca.read_bytes() == AUTHORITY.cert_pem.bytes()
        assert ca.stat().st_mode & 0o077 == 0
        assert ca.parent.stat().st_mode & 0o077 == 0
    assert token == "secret"
    assert not ca.exists()


def test_paths_start_at_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "deep"
    folder.mkdir()
    (folder / "token").write_text("from a file\n")
    (folder / "client.pem").write_bytes(CLIENT.cert_chain_pems[0].bytes())
    (folder / "client.key").write_bytes(CLIENT.private_key_pem.bytes())
    user = {"client-certificate": "client.pem", "client-key": "client.key", "tokenFile": "token"}
    with connect(read_access((write(folder / "config", config(user=user)),))) as client:
        assert client.credentials.cert == folder / "client.pem"
        assert client.credentials.key == folder / "client.key"
        assert client.credentials.token == "from a file"


@pytest.mark.parametrize(("file", "expected"), [("token", "from a file"), ("missing", "secret")])
def test_a_file_with_a_token_takes_precedence(tmp_path: Path, file: str, expected: str) -> None:
    (tmp_path / "token").write_text("from a file\n")
    user = {"token": "secret", "tokenFile": file}
    with connect(read_access((write(tmp_path / "config", config(user=user)),))) as client:
        assert client.credentials.token == expected


def test_a_client_certificate_takes_precedence_over_the_command(tmp_path: Path) -> None:
    user = {
        "client-certificate-data": encoded(CLIENT.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(CLIENT.private_key_pem.bytes()),
        "exec": _COMMAND | {"command": "/missing"},
    }
    with connect(read_access((write(tmp_path / "config", config(user=user)),))) as client:
        assert client.credentials.cert is not None
        assert client.credentials.source is None


@pytest.mark.parametrize("section", ["clusters", "users", "contexts"])
def test_two_entries_of_a_name_in_one_file_are_refused(tmp_path: Path, section: str) -> None:
    content = config()
    content[section] *= 2
    assert "two entries" in refusal(write(tmp_path / "config", content))


def test_certificates_that_cannot_be_used_are_refused(tmp_path: Path) -> None:
    data = {"client-certificate-data": encoded(b"no"), "client-key-data": encoded(b"no")}
    access = read_access((write(tmp_path / "config", config(user=data)),))
    with pytest.raises(UnreadableInput, match="cannot be used"), connect(access):
        pass


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({}, {"token": "a\nX-Other: b"}, "characters that no header can have"),
        ({}, {"token": "\u20ac"}, "characters that no header can have"),
        ({}, {"tokenFile": "a\0b"}, "cannot be read"),
        ({}, {"client-certificate": "a\0", "client-key": "b\0"}, "cannot be used"),
        ({"certificate-authority-data": "", "certificate-authority": "a\0"}, {}, "cannot be used"),
    ],
)
def test_values_that_cannot_be_used_are_refused(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], words: str
) -> None:
    access = read_access((write(tmp_path / "config", config(cluster, user)),))
    with pytest.raises(UnreadableInput, match=words), connect(access):
        pass


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.parametrize(
    ("cluster", "user"),
    [
        ({}, {"tokenFile": "pipe"}),
        ({}, {"client-certificate": "pipe", "client-key": "config"}),
        ({}, {"client-certificate": "config", "client-key": "pipe"}),
        ({"certificate-authority-data": "", "certificate-authority": "pipe"}, {}),
        ({"certificate-authority-data": "", "certificate-authority": "pipe"}, {"exec": _COMMAND}),
    ],
)
def test_pipes_are_refused_at_once(
    pipe: Path, cluster: dict[str, Any], user: dict[str, Any]
) -> None:
    access = read_access((write(pipe.with_name("config"), config(cluster, user)),))
    with pytest.raises(UnreadableInput, match="not a regular file"), connect(access):
        pass


def test_a_pipe_is_no_kubeconfig(pipe: Path) -> None:
    assert "not a regular file" in refusal(pipe)


@pytest.mark.parametrize(
    ("cluster", "user", "word"),
    [
        ({}, {"auth-provider": {"name": "gcp"}}, "`auth-provider`"),
        ({}, {"username": "a", "password": "b"}, "`username`"),
        ({}, {"token": "a", "as": "b"}, "`as`"),
        ({}, {"token": "a", "as-user-extra": {"a": ["b"]}}, "`as-user-extra`"),
        ({"insecure-skip-tls-verify": True}, {}, "`insecure-skip-tls-verify`"),
        ({"proxy-url": "http://proxy"}, {}, "`proxy-url`"),
        ({"server": "http://127.0.0.1"}, {}, "not an https URL"),
        ({"server": ""}, {}, "not an https URL"),
        ({"server": "https://"}, {}, "not an https URL"),
        ({"server": "https://127.0.0.1:99999"}, {}, "not an https URL"),
        ({"server": "https://127.0.0.1:port"}, {}, "not an https URL"),
        ({"server": "https://[::1"}, {}, "not an https URL"),
        ({"server": " https://127.0.0.1"}, {}, "not an https URL"),
        ({"server": "https://127.0.0.1\n"}, {}, "not an https URL"),
        ({"server": "https://one..example"}, {}, "not an https URL"),
        ({"server": f"https://{'a' * 300}.example"}, {}, "not an https URL"),
    ],
)
def test_what_is_not_supported_is_refused(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], word: str
) -> None:
    assert word in refusal(write(tmp_path / "config", config(cluster, user)))


def test_missing_entries_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "config", config())
    assert "unknown context 'two' Use one of: one." in refusal(path, "two")
    assert "no current context" in refusal(write(path, {**config(), "current-context": ""}))
    assert "unknown user 'one'" in refusal(write(path, {**config(), "users": []}))


@pytest.mark.parametrize(
    ("cluster", "user", "words"),
    [
        ({"certificate-authority-data": "?"}, {}, "certificate-authority-data is not valid base64"),
        ({"certificate-authority-data": "\u20ac"}, {}, "not valid base64"),
        ({"certificate-authority-data": "YQ==YQ=="}, {}, "not valid base64"),
        ({"certificate-authority": "ca.crt"}, {}, "`certificate-authority-data` are both set"),
        ({"insecure-skip-tls-verify": "false"}, {}, "is not true or false"),
        ({}, {"token": 123456}, "users[0].user.token is not a string"),
        ({}, {"client-key-data": ["a"]}, "client-key-data is not a string"),
        ({}, {"client-certificate": "a.crt"}, "a client certificate without a key"),
        ({}, {"client-key": "a", "client-key-data": "Yg=="}, "`client-key-data` are both set"),
        ({}, {"exec": "aws"}, "users[0].user.exec is not a mapping"),
        ({}, {"exec": _COMMAND | {"command": ""}}, "no command"),
        ({}, {"exec": _COMMAND | {"args": "eks"}}, "exec.args is not a list"),
        ({}, {"exec": _COMMAND | {"env": [{"name": "A", "value": 1}]}}, "env[0].value is not a"),
        ({}, {"exec": _COMMAND | {"env": [{"value": "a"}]}}, "variable without a name"),
        ({}, {"exec": _COMMAND | {"interactiveMode": "never"}}, "interactiveMode"),
        ({}, {"exec": _COMMAND | {"interactiveMode": None}}, "interactiveMode"),
    ],
)
def test_what_kubectl_refuses_is_refused(
    tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any], words: str
) -> None:
    assert words in refusal(write(tmp_path / "config", config(cluster, user)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "Other"}, "kind is 'Other'"),
        ({"apiVersion": "v2"}, "apiVersion is 'v2'"),
        ({"apiVersion": 1}, "apiVersion is not a string"),
        ({"contexts": {"name": "one"}}, "contexts is not a list"),
        ({"users": [{"name": "other", "user": {"token": True}}]}, "user.token is not a string"),
    ],
)
def test_files_that_kubectl_refuses_are_refused(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    assert words in refusal(write(tmp_path / "config", config() | change))


def test_files_that_kubectl_reads_are_read(tmp_path: Path) -> None:
    """One of several files may be empty, data may have line breaks, and a null is no value."""
    (tmp_path / "empty").write_text("# nothing\n")
    authority = base64.encodebytes(AUTHORITY.cert_pem.bytes()).decode()
    content = config({"certificate-authority-data": authority}, {"token": "a", "exec": None})
    files = tmp_path / "empty", write(tmp_path / "config", {**content, "kind": None})
    with connect(read_access(files)) as client:
        assert client.credentials.ca.read_bytes() == AUTHORITY.cert_pem.bytes()


@pytest.mark.parametrize("text", ["", "[]", "a: [", "x" * 100, "\0"])
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert refusal(path)
    path.unlink()
    assert "cannot be read" in refusal(path)


@pytest.mark.parametrize("option", ["--install-crds", "--context=a", "--kubeconfig=a"])
def test_options_of_live_need_it(tmp_path: Path, option: str) -> None:
    result = run(str(tmp_path), option)
    assert result.exit_code == 2
    assert "requires --live" in result.output


def test_server_that_does_not_respond_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "infrastructure-components.yaml", crd("CoralMachine"))
    path = write(tmp_path / "kubeconfig", config({"server": "https://127.0.0.1:1"}))
    result = run(str(tmp_path), "--live", "--kubeconfig", str(path), "--format", "json")
    assert result.exit_code == 2
    assert "the API server does not respond" in result.output
