"""capsmith accepts the certificates of API servers that kubectl accepts, on each Python."""

from __future__ import annotations

import ast
import ssl
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.user_kubeconfig import connect, read_access
from tests.certificates import (
    EXPIRED,
    FORMS,
    GROUP,
    ApiServer,
    Form,
    Issuer,
    api_server,
    strict_default,
)

ROOT = Path(__file__).parents[4]
ALL = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
MAKERS = {"create_default_context", "create_ssl_context", "default_ssl_context", "verify_cluster"}
"""What makes contexts with the default of Python."""
OWNERS = {
    "generator/capsmith/clusters/processes/tls.py",
    "runtime/src/capsmith_runtime/kube/connection.py",
}


@pytest.fixture(autouse=True)
def _strict_default() -> Iterator[None]:
    with strict_default():
        yield


def version(server: ApiServer, authority: Path | None = None) -> str:
    with closing(KubeClient(server.url, Credentials(authority or server.ca))) as client:
        return client.preferred_version(GROUP)


@ALL
def test_a_cluster_is_accepted(tmp_path: Path, form: Form) -> None:
    with api_server(tmp_path, form) as server:
        assert version(server) == "example.com/v1"


@ALL
def test_the_cluster_of_a_kubeconfig_is_accepted(tmp_path: Path, form: Form) -> None:
    """As in `verify --live`, `conformance --kubeconfig` and `lab up --kubeconfig`."""
    with api_server(tmp_path, form) as server:
        path = tmp_path / "kubeconfig"
        path.write_bytes(server.kubeconfig())
        with connect(read_access((path,))) as client:
            assert client.preferred_version(GROUP) == "example.com/v1"


@ALL
def test_another_authority_is_refused(tmp_path: Path, form: Form) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(Issuer(form).certificate)
    with api_server(tmp_path, form) as server:
        with pytest.raises(ssl.SSLCertVerificationError):
            version(server, other)
        assert server.paths == []


@ALL
@pytest.mark.parametrize("host", ["127.0.0.2", "elsewhere.example.com"])
def test_another_host_is_refused(tmp_path: Path, form: Form, host: str) -> None:
    with api_server(tmp_path, form, host) as server:
        with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
            version(server)
        assert server.paths == []


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    with api_server(tmp_path, EXPIRED) as server:
        with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
            version(server)
        assert server.paths == []


def test_nothing_else_makes_contexts_by_default() -> None:
    """One function in the generator and one in the runtime do, and blueprints have no own."""
    users = set()
    for folder in ("generator", "runtime/src", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            if any(_named(node) in MAKERS for node in ast.walk(tree)):
                users.add(str(path.relative_to(ROOT)))
    for path in (ROOT / "blueprints").rglob("*.jinja"):
        if any(name in path.read_text(encoding="utf-8") for name in MAKERS):
            users.add(str(path.relative_to(ROOT)))
    assert users == OWNERS


def _named(node: ast.AST) -> str:
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name) | ast.alias(name=name):
            return name
    return ""
