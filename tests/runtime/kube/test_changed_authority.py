"""The certificate authority of the management cluster changes while the process runs."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import pytest
import trustme

from capsmith_runtime.errors import UnreachableError
from capsmith_runtime.kube.certificates import CertificateFiles, Certificates
from capsmith_runtime.kube.http_server import HTTPLimits, HTTPServer, Request, Response
from capsmith_runtime.kube.lightkube_client import TLS_FAILURES, LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from tests.runtime.support.following import connected
from tests.runtime.webhook.hook_serving import write_certificate

GROUP = {"preferredVersion": {"version": "v1"}, "versions": [{"version": "v1"}]}


@dataclass
class Server:
    """An API server with one response, and the kubeconfig of its clients."""

    folder: Path
    certificates: Certificates
    port: int = 0

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    def change_authority(self) -> trustme.CA:
        authority = trustme.CA()
        write_certificate(self.folder, authority)
        assert self.certificates.refresh()
        return authority

    def trust(self, authority: trustme.CA) -> None:
        data = base64.b64encode(authority.cert_pem.bytes()).decode()
        cluster = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": data}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "t"}}],
        }
        self.kubeconfig.write_text(json.dumps(config))


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Server]:
    async def handle(request: Request) -> Response:
        return Response(HTTPStatus.OK, json.dumps(GROUP).encode())

    found = Server(folder, Certificates(CertificateFiles(directory=folder), Metrics(), "test"))
    authority = found.change_authority()
    server = HTTPServer("127.0.0.1", 0, handle, HTTPLimits(idle_seconds=0.0))
    found.port = await server.start(found.certificates.server_context())
    found.trust(authority)
    try:
        yield found
    finally:
        await server.close()


async def refused(client: LightkubeClient, times: int) -> None:
    for _ in range(times):
        with pytest.raises(UnreachableError):
            await client.served_versions("example.com")


async def test_a_changed_authority_is_read_again(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connected(server.kubeconfig) as client:
        assert await client.served_versions("example.com") == ("v1",)
        server.trust(server.change_authority())
        await refused(client, TLS_FAILURES - 1)
        assert client.is_trusted
        assert await client.served_versions("example.com") == ("v1",)
        assert client.is_trusted


async def test_a_server_of_an_unknown_authority_is_reported(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, connected(server.kubeconfig) as client:
        server.change_authority()
        await refused(client, TLS_FAILURES)
        assert not client.is_trusted
