"""The objects of a cluster are found in the version that has their kind."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.lab.demo import observe
from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki

JSON = dict[str, Any]
_OWN = "controlplane.cluster.x-k8s.io"


def _resources(*kinds: str) -> JSON:
    found = [{"kind": each, "name": f"{each.lower()}s", "namespaced": True} for each in kinds]
    return {"resources": found}


def _group(name: str, *versions: str) -> JSON:
    listed = [{"groupVersion": f"{name}/{each}"} for each in versions]
    return {"versions": listed, "preferredVersion": listed[0]}


_CLUSTER: JSON = {
    "metadata": {"name": "demo", "namespace": "ns"},
    "spec": {"controlPlaneRef": {"apiGroup": _OWN, "kind": "SkiffControlPlane", "name": "cp"}},
}
_ANSWERS: dict[str, JSON] = {
    "/apis/cluster.x-k8s.io": _group("cluster.x-k8s.io", "v1beta2"),
    "/apis/cluster.x-k8s.io/v1beta2": _resources("Cluster", "Machine", "MachineDeployment"),
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/clusters/demo": _CLUSTER,
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines": {"items": []},
    "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machinedeployments": {"items": []},
    f"/apis/{_OWN}": _group(_OWN, "v1beta2", "v1alpha1"),
    f"/apis/{_OWN}/v1beta2": _resources("KubeadmControlPlane"),
    f"/apis/{_OWN}/v1alpha1": _resources("SkiffControlPlane"),
    f"/apis/{_OWN}/v1alpha1/namespaces/ns/skiffcontrolplanes/cp": {
        "kind": "SkiffControlPlane",
        "metadata": {"name": "cp"},
        "spec": {"replicas": 1},
    },
}


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        found = _ANSWERS.get(self.path.partition("?")[0])
        body = json.dumps(found or {}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def client(tmp_path: Path) -> Iterator[KubeClient]:
    pki = Pki(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving.cert, pki.serving.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    client = KubeClient(f"https://127.0.0.1:{server.server_port}", Credentials(pki.ca))
    yield client
    client.close()
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_kind_is_found_in_a_group_that_providers_share(client: KubeClient) -> None:
    found = observe(client, "ns", "demo")
    assert found.control_plane is not None
    assert (found.control_plane["kind"], found.wanted) == ("SkiffControlPlane", 1)


def test_a_cluster_that_does_not_exist_is_none(client: KubeClient) -> None:
    assert observe(client, "ns", "other").cluster is None
