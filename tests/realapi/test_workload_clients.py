"""Clients of a workload cluster whose API server trusts what the generated code has made."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from capsmith.clusters.processes.kube import JSON, Credentials, KubeClient
from capsmith.clusters.processes.kubeconfig import request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith_runtime.controlplane.secrets.certificates import create_authority, create_signing_keys
from capsmith_runtime.errors import NotFoundError, UnauthorizedError
from capsmith_runtime.kube.client import NamespacedName as ObjectKey
from capsmith_runtime.kube.client import ResourceType, Selection
from capsmith_runtime.workload.client import (
    ClusterUnreachableError,
    NoKubeconfigError,
    UnusableKubeconfigError,
)
from capsmith_runtime.workload.kubeconfig import Access, parse, render
from tests.realapi.conftest import NewServer
from tests.realapi.workload_cluster import NAMESPACE, Workload, clients, cluster_of, store

NUMBERS = itertools.count(1)
SERVICES = ResourceType("", "v1", "Service", "services")
EXEC = b"""
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}}}]
current-context: c
"""
NO_CERTIFICATE = render("one", Access(server="https://127.0.0.1:1", certificate=b"c", key=b"k"))


@pytest.fixture(scope="module")
def workload(new_server: NewServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workload]:
    authority, signing = create_authority("kubernetes", datetime.now(UTC)), create_signing_keys()
    issuer = trustme.CA.from_pem(authority.certificate, authority.key)
    pki = Pki(tmp_path_factory.mktemp("workload-pki"), issuer)
    pki.service_account.cert.write_bytes(signing.certificate)
    pki.service_account.key.write_bytes(signing.key)
    server = new_server("workload", pki)
    try:
        server.start()
        yield Workload(server, authority)
    finally:
        server.stop()


@pytest.fixture
def secret(api: KubeClient) -> Iterator[JSON]:
    """Return a Secret of a new cluster; the Secret does not exist before or after the test."""
    name = f"cluster-{next(NUMBERS)}"
    found: JSON = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-kubeconfig", "namespace": NAMESPACE},
    }
    yield found
    if api.find("v1", "Secret", f"{name}-kubeconfig", NAMESPACE) is not None:
        api.delete(found)


def kubectl_says(kubeconfig: Path, *arguments: str) -> JSON:
    command = [find_kubectl(), f"--kubeconfig={kubeconfig}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answer: JSON = json.loads(done.stdout)
    return answer


def test_kubectl_and_the_api_server_take_the_kubeconfig(workload: Workload, tmp_path: Path) -> None:
    """Proves: SEC-01, SEC-03."""
    path = tmp_path / "kubeconfig"
    path.write_bytes(workload.kubeconfig())

    version = kubectl_says(path, "get", "--raw", "/version")
    who = kubectl_says(path, "auth", "whoami", "-o", "json")

    assert version["gitVersion"].startswith("v1.")
    assert who["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert "system:masters" in who["status"]["userInfo"]["groups"]


def test_tokens_are_signed_with_the_keys(workload: Workload) -> None:
    """Proves: SEC-03."""
    client = workload.server.client
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}
    client.create({**account, "metadata": {"name": "a", "namespace": NAMESPACE}})

    token = request_token(client, NAMESPACE, "a")
    known = KubeClient(workload.server.url, Credentials(client.credentials.ca, token=token))

    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    answer = known.request("POST", path, body=review)
    known.close()
    assert answer["status"]["userInfo"]["username"] == f"system:serviceaccount:{NAMESPACE}:a"


def test_a_client_is_kept_while_its_kubeconfig_stays(
    api: KubeClient, api_server: ApiServer, workload: Workload, secret: JSON
) -> None:
    """Proves: SEC-01."""
    name = cluster_of(secret)

    async def run() -> None:
        async with clients(api_server) as made:
            with pytest.raises(NoKubeconfigError) as raised:
                await made.get(NAMESPACE, name)
            assert raised.value.waiting.reason == "WaitingForKubeconfig"

            store(api, secret, workload.kubeconfig())
            first = await made.get(NAMESPACE, name)
            found = await first.get(SERVICES, ObjectKey(NAMESPACE, "kubernetes"))
            assert found["kind"] == "Service"
            assert await made.get(NAMESPACE, name) is first

            store(api, secret, workload.kubeconfig())  # another certificate
            second = await made.get(NAMESPACE, name)
            assert second is not first
            await first.served_versions("apps")  # what is under way comes to its end
            with pytest.raises(NotFoundError):
                await second.get(SERVICES, ObjectKey(NAMESPACE, "missing"))

            api.delete({**secret, "metadata": secret["metadata"]})
            with pytest.raises(NoKubeconfigError):
                await made.get(NAMESPACE, name)

    asyncio.run(run())


def test_the_secret_is_not_read_each_time(
    api: KubeClient, api_server: ApiServer, workload: Workload, secret: JSON
) -> None:
    name = cluster_of(secret)

    async def run() -> None:
        async with clients(api_server, refresh_seconds=600.0) as made:
            store(api, secret, workload.kubeconfig())
            first = await made.get(NAMESPACE, name)
            store(api, secret, workload.kubeconfig())
            assert await made.get(NAMESPACE, name) is first
            made.invalidate(NAMESPACE, name)
            assert await made.get(NAMESPACE, name) is not first

    asyncio.run(run())


def test_a_client_that_is_refused_makes_the_kubeconfig_be_read_again(
    api: KubeClient, api_server: ApiServer, workload: Workload, secret: JSON
) -> None:
    name = cluster_of(secret)

    async def run() -> None:
        async with clients(api_server, refresh_seconds=600.0) as made:
            stranger = create_authority("kubernetes", datetime.now(UTC))
            store(api, secret, workload.kubeconfig(stranger))
            with pytest.raises(UnauthorizedError):
                await (await made.get(NAMESPACE, name)).served_versions("apps")
            store(api, secret, workload.kubeconfig())
            assert await (await made.get(NAMESPACE, name)).served_versions("apps") == ("v1",)

    asyncio.run(run())


def test_a_server_that_is_not_the_clusters_is_as_good_as_none(
    api: KubeClient, api_server: ApiServer, secret: JSON, workload: Workload
) -> None:
    """The server of the management cluster is another one: its CA is not trusted."""
    other = Workload(api_server, workload.authority)
    store(api, secret, other.kubeconfig())

    async def run() -> None:
        async with clients(api_server) as made:
            client = await made.get(NAMESPACE, cluster_of(secret))
            with pytest.raises(ClusterUnreachableError, match=r"workload cluster .*certificate"):
                await client.served_versions("apps")

    asyncio.run(run())


def test_a_silent_server_is_given_up(
    api: KubeClient, api_server: ApiServer, secret: JSON, workload: Workload
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        access = replace(parse(workload.kubeconfig()), server=f"https://127.0.0.1:{port}")
        store(api, secret, render("one", access))

        async def run() -> float:
            async with clients(api_server, request_seconds=2.0) as made:
                client = await made.get(NAMESPACE, cluster_of(secret))
                began = time.monotonic()
                with pytest.raises(ClusterUnreachableError):
                    await client.served_versions("apps")
                return time.monotonic() - began

        assert 0.5 < asyncio.run(run()) < 25.0, "less than by default"


@pytest.mark.parametrize(
    "content",
    [b"nonsense", b"", EXEC, NO_CERTIFICATE],
    ids=["nonsense", "empty", "exec", "no certificate"],
)
def test_an_unusable_kubeconfig_is_reported(
    api: KubeClient, api_server: ApiServer, secret: JSON, content: bytes
) -> None:
    store(api, secret, content)

    async def run() -> None:
        async with clients(api_server) as made:
            with pytest.raises(UnusableKubeconfigError) as raised:
                await made.get(NAMESPACE, cluster_of(secret))
            assert raised.value.waiting.reason == "KubeconfigNotUsable"
            assert secret["metadata"]["name"] in raised.value.waiting.message

    asyncio.run(run())


def test_watches_go_through(
    api: KubeClient, api_server: ApiServer, workload: Workload, secret: JSON
) -> None:
    store(api, secret, workload.kubeconfig())

    async def run() -> None:
        async with clients(api_server) as made:
            client = await made.get(NAMESPACE, cluster_of(secret))
            page = await client.list_page(SERVICES, Selection(namespace=NAMESPACE))
            watch = client.watch(
                SERVICES, Selection(namespace=NAMESPACE), resource_version=page.resource_version
            )
            service: JSON = {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "watched", "namespace": NAMESPACE},
                "spec": {"ports": [{"port": 80}]},
            }
            key = ObjectKey(NAMESPACE, "watched")
            await client.create(SERVICES, service)
            async with aclosing(watch) as events:
                event = await anext(events)
            assert (event.type, event.object["metadata"]["name"]) == ("ADDED", "watched")
            await client.patch(SERVICES, key, {"metadata": {"labels": {"a": "b"}}})
            applied = {**service, "metadata": {**service["metadata"], "labels": {"c": "d"}}}
            answer = await client.apply(SERVICES, applied, force=True)
            assert answer["metadata"]["labels"] == {"a": "b", "c": "d"}
            await client.patch_status(SERVICES, key, {"status": {"loadBalancer": {}}})
            await client.delete(SERVICES, key)

    asyncio.run(run())


def test_idle_clients_are_closed(
    api: KubeClient, api_server: ApiServer, workload: Workload, secret: JSON
) -> None:
    store(api, secret, workload.kubeconfig())

    async def run() -> None:
        async with clients(api_server, refresh_seconds=600.0) as made:
            first = await made.get(NAMESPACE, cluster_of(secret))
            made.close_idle(time.monotonic() + 3600)
            assert await made.get(NAMESPACE, cluster_of(secret)) is not first

    asyncio.run(run())
