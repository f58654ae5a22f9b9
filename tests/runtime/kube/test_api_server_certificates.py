"""Managers accept the certificates of API servers that kubectl and core accept, on each Python."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith_runtime.errors import UnreachableError
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.workload.client import WorkloadClients
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
from tests.runtime.infrastructure.scripted_provider import PROVIDER
from tests.runtime.support.following import connected

ALL = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@pytest.fixture(autouse=True)
def _strict_default() -> Iterator[None]:
    with strict_default():
        yield


async def versions(server: ApiServer, authority: bytes = b"") -> tuple[str, ...]:
    """Return the versions of a group, as a manager reads them."""
    kubeconfig = server.folder / "kubeconfig"
    kubeconfig.write_bytes(server.kubeconfig(authority))
    async with connected(kubeconfig) as client:
        return await client.served_versions(GROUP)


@ALL
async def test_a_management_cluster_is_accepted(tmp_path: Path, form: Form) -> None:
    with api_server(tmp_path, form) as server:
        assert await versions(server) == ("v1",)


@ALL
async def test_a_workload_cluster_is_accepted(tmp_path: Path, form: Form) -> None:
    api = FakeApi("v1beta2", PROVIDER.manifests)
    with api_server(tmp_path, form) as server:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "own-kubeconfig", "namespace": "ns"},
            "data": {"value": base64.b64encode(server.kubeconfig()).decode()},
        }
        api.add(secret)
        clients = WorkloadClients(api, Metrics(), field_manager="tests")
        client = await clients.get("ns", "own")
        assert await client.served_versions(GROUP) == ("v1",)
        await clients.close()


@ALL
async def test_another_authority_is_refused(tmp_path: Path, form: Form) -> None:
    with api_server(tmp_path, form) as server:
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            await versions(server, Issuer(form).certificate)
        assert server.paths == []


@ALL
@pytest.mark.parametrize("host", ["127.0.0.2", "elsewhere.example.com"])
async def test_another_host_is_refused(tmp_path: Path, form: Form, host: str) -> None:
    with api_server(tmp_path, form, host) as server:
        with pytest.raises(UnreachableError, match="IP address mismatch"):
            await versions(server)
        assert server.paths == []


async def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    with api_server(tmp_path, EXPIRED) as server:
        with pytest.raises(UnreachableError, match="certificate has expired"):
            await versions(server)
        assert server.paths == []
