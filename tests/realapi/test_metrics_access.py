"""Metrics by HTTPS: the API server decides who reads them, with the roles that are shipped."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import trustme
import yaml
from lightkube.config.kubeconfig import KubeConfig, SingleConfig

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.servers import ApiServer
from capsmith_runtime.kube.diagnostics import Diagnostics, DiagnosticsOptions
from capsmith_runtime.kube.lightkube_client import LightkubeClient
from capsmith_runtime.kube.metrics import Metrics
from tests.golden.cases import EXAMPLES, Case, generated
from tests.runtime.webhook.hook_serving import trusting, write_certificate

NAMESPACE = "default"
RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True)
class Site:
    """ServiceAccounts with the shipped roles, and a certificate."""

    server: ApiServer
    folder: Path
    authority: trustme.CA

    def token(self, account: str) -> str:
        return request_token(self.server.client, NAMESPACE, account)

    def config(self) -> SingleConfig:
        """Return the kubeconfig of the manager's ServiceAccount."""
        path = self.folder / "kubeconfig"
        ca = self.server.client.credentials.ca
        path.write_text(render_token_kubeconfig(self.server.url, ca, self.token("metrics-manager")))
        found = KubeConfig.from_file(path).get()
        assert found is not None
        return found


@pytest.fixture(scope="module")
def site(api_server: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("metrics")
    generated(Case("acme", EXAMPLES / "acme" / "provider.yaml"), folder / "repository")
    roles = yaml.safe_load_all((folder / "repository/config/rbac/role.yaml").read_text())
    bound = {
        "manager-role": "metrics-manager",
        "metrics-reader": "metrics-reader",
        "diagnostics-client": "diagnostics-client",
    }
    objects = []
    for role in roles:
        objects += [role, _binding(role, bound[role["metadata"]["name"]])]
    objects += [_account(name) for name in (*bound.values(), "metrics-stranger")]
    for each in objects:
        api_server.client.create(each)
    authority = trustme.CA()
    write_certificate(folder / "certificates", authority)
    yield Site(api_server, folder, authority)
    for each in objects:
        api_server.client.delete(each)


def test_only_authorized_clients_read_metrics(site: Site) -> None:
    """Proves: MG-03."""

    async def test() -> None:
        async with _serving(site, site.folder / "certificates") as (metrics, probes):
            get = partial(_get, trusting(site.authority))
            assert await _status(get, f"{probes}/readyz") == 200
            assert await _status(get, f"{probes}/metrics") == 404
            url = f"{metrics}/metrics"
            assert await _eventual_status(get, url) == 401
            assert await _status(get, url, "invalid") == 401
            assert await _status(get, url, site.token("metrics-stranger")) == 403
            assert await _status(get, f"{metrics}/healthz", site.token("metrics-reader")) == 404
            reader = site.token("metrics-reader")
            # The API server may be a moment behind with the role that was just bound.
            async with asyncio.timeout(60):
                while await _status(get, url, reader) != 200:
                    await asyncio.sleep(1)
            status, body = await asyncio.to_thread(get, url, reader)
            assert (status, b"# TYPE workqueue_depth gauge" in body) == (200, True)
            assert b'certificate_expiration_timestamp_seconds{server="metrics"}' in body
            dump = f"{metrics}/debug/dump"
            assert await _status(get, dump) == 401
            assert await _status(get, dump, reader) == 403
            client = site.token("diagnostics-client")
            async with asyncio.timeout(60):
                while await _status(get, dump, client) != 200:
                    await asyncio.sleep(1)

    asyncio.run(test())


def test_a_certificate_may_come_later(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, metrics are for this host only."""
    monkeypatch.setattr("capsmith_runtime.kube.diagnostics.POLL_SECONDS", 0.1)
    certificates = site.folder / "later"

    async def test() -> None:
        async with _serving(site, certificates) as (metrics, _):
            get = partial(_get, trusting(site.authority))
            plain = metrics.replace("https", "http")
            assert await _status(get, f"{plain}/metrics") == 200
            write_certificate(certificates, site.authority)
            assert await _eventual_status(get, f"{metrics}/metrics") == 401

    asyncio.run(test())


@asynccontextmanager
async def _serving(site: Site, certificates: Path) -> AsyncIterator[tuple[str, str]]:
    """Serve as a manager does; yield the URLs of metrics and of probes."""
    ports = free_port(), free_port()
    addresses = [f"127.0.0.1:{port}" for port in ports]
    options = DiagnosticsOptions(
        address=addresses[0], health_address=addresses[1], certificates=certificates
    )
    metrics = Metrics()
    client = LightkubeClient(metrics, field_manager="test", config=site.config)
    diagnostics = Diagnostics(options, client, metrics, {}, {})
    await diagnostics.start()
    running = asyncio.create_task(diagnostics.run())
    try:
        yield f"https://{addresses[0]}", f"http://{addresses[1]}"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await diagnostics.close()
        await client.close()


async def _eventual_status(get: Callable[..., tuple[int, bytes]], url: str) -> int:
    """Return the status as soon as the server listens by HTTPS."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(OSError):
                return await _status(get, url)
            await asyncio.sleep(0.05)


async def _status(get: Callable[..., tuple[int, bytes]], url: str, token: str = "") -> int:
    status, _ = await asyncio.to_thread(get, url, token)
    return status


def _get(context: ssl.SSLContext, url: str, token: str = "") -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)
    trusted = context if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=30, context=trusted) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def _account(name: str) -> JSON:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _binding(role: JSON, account: str) -> JSON:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": account},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }
