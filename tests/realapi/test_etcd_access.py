"""Only API servers reach an etcd, to whose ports every user of the computer can connect."""

from __future__ import annotations

import json
import ssl
import urllib.request
from http.client import HTTPException

import pytest

from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import Etcd

_ALL = json.dumps({"key": "AA==", "range_end": "AA=="}).encode()


def _read(url: str, context: ssl.SSLContext | None) -> bytes:
    with urllib.request.urlopen(url, _ALL, timeout=30, context=context) as response:
        return bytes(response.read())


def _contexts(pki: Pki) -> dict[str, ssl.SSLContext]:
    """What others have: no certificate, and those of the API server's authority."""
    found = {}
    for name, pair in (("none", None), ("serving", pki.serving), ("admin", pki.admin)):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if pair is not None:
            context.load_cert_chain(pair.cert, pair.key)
        found[name] = context
    return found


@pytest.mark.parametrize("holder", ["none", "serving", "admin"])
def test_other_users_reach_neither_data_nor_peers(
    etcd: Etcd, pki: Pki, api: KubeClient, holder: str
) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2"}}
    secret["metadata"] = {"name": f"seen-by-{holder}", "namespace": "default"}
    api.create(secret)
    context = _contexts(pki)[holder]
    for url in (f"{etcd.url}/v3/kv/range", f"{etcd.peer_url}/members"):
        with pytest.raises((OSError, HTTPException)):
            _read(url, context)
        with pytest.raises((OSError, HTTPException)):
            _read(url.replace("https:", "http:"), None)


def test_the_api_server_stores_what_etcd_returns_to_its_owner(etcd: Etcd, api: KubeClient) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"password": "hunter2"}}
    api.create({**secret, "metadata": {"name": "owned", "namespace": "default"}})
    assert any(b"hunter2" in value for value in etcd.read("/realapi/secrets/default/owned"))
