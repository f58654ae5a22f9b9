"""etcd, kube-apiserver and kube-controller-manager, as plain processes."""

from __future__ import annotations

import base64
import json
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

from capsmith.clusters.processes.audit import audit_flags
from capsmith.clusters.processes.kube import JSON, ApiError, Credentials, KubeClient
from capsmith.clusters.processes.kubeconfig import render_admin_kubeconfig
from capsmith.clusters.processes.pki import EtcdTLS, Pki
from capsmith.clusters.processes.process import (
    Process,
    free_port,
    go_environment,
    open_local,
    probe_http,
)
from capsmith.clusters.processes.tools import Toolbox

ETCD_TLS = "etcd-tls"
"""Name of the folder, next to etcd's data, that holds etcd's certificates."""
LOCAL = "127.0.0.1"
"""Address on which servers listen unless Pods need to reach them."""
_CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)


class EtcdAddress(Protocol):
    """A running etcd's client URL and TLS files, regardless of the process that started it."""

    url: str
    tls: EtcdTLS


class Etcd:
    """An etcd shared by all API servers, each of which has its own key prefix.

    It accepts only clients and peers that present a certificate from its folder, because it stores
    Secrets and permissions, and any user of the computer can connect to its ports.
    """

    def __init__(self, tools: Toolbox, folder: Path) -> None:
        client, peer = (f"https://127.0.0.1:{free_port()}" for _ in range(2))
        self.url, self.peer_url = client, peer
        self.tls = EtcdTLS.issue(folder / ETCD_TLS)
        argv: list[str | Path] = [
            tools.path("k8s", "etcd"),
            "--name=etcd",
            f"--data-dir={folder / 'etcd-data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=etcd={peer}",
            *_etcd_tls_flags(self.tls),
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]
        self.process = Process("etcd", argv, folder / "etcd.log", go_environment())

    def start(self) -> None:
        """Start etcd and wait until it is healthy.

        Raises ProcessError if it fails.
        """
        self.process.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until etcd is healthy.

        Raises ProcessError if its process exits first.
        """
        self.process.wait_ready(probe_http(f"{self.url}/health", self.tls.client_context()))

    def call(self, method: str, body: JSON) -> JSON:
        """Call a method in etcd's v3 API, such as ``kv/range``, and return the response.

        Keys and values are in base64.  Raises OSError if etcd refuses the call.
        """
        request = urllib.request.Request(f"{self.url}/v3/{method}", json.dumps(body).encode())
        with open_local(request, 60, self.tls.client_context()) as response:
            found: JSON = json.load(response)
            return found

    def read(self, prefix: str) -> list[bytes]:
        """Return the values of all keys that start with ``prefix``."""
        first = prefix.encode()
        end = first[:-1] + bytes([first[-1] + 1])
        keys = {"key": first, "range_end": end}
        body = {name: base64.b64encode(key).decode() for name, key in keys.items()}
        found = self.call("kv/range", body).get("kvs", [])
        return [base64.b64decode(each["value"]) for each in found]

    def stop(self) -> None:
        """Stop etcd."""
        self.process.stop()


class ApiServer:
    """A kube-apiserver with RBAC, and with the admission plugin that protects owner references."""

    def __init__(
        self,
        tools: Toolbox,
        pki: Pki,
        etcd: EtcdAddress,
        folder: Path,
        name: str,
        port: int | None = None,
        *,
        audited: bool = True,
        has_node_taints: bool = True,
        address: str = LOCAL,
        others: Sequence[str] = (),
    ) -> None:
        """Define a server, without starting it.

        If ``audited`` is true, it logs each request from a ServiceAccount.  Unless
        ``has_node_taints`` is true, new Nodes do not get the not-ready taint.  The server listens
        at ``address``.  ``others`` are flags that replace those with the same name.
        """
        self.name = name
        port = port or free_port()
        self.url = f"https://{address}:{port}"
        self.kubeconfig = folder / f"{name}.kubeconfig"
        folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig_text = render_admin_kubeconfig(
            self.url, pki.ca, pki.admin.cert, pki.admin.key
        )
        self.kubeconfig.write_text(self.kubeconfig_text)
        self.client = KubeClient(self.url, Credentials(pki.ca, pki.admin.cert, pki.admin.key))
        self.audit_log = folder / f"audit-{name}.log"
        flags = _apiserver_flags(pki, etcd, name, port, address)
        if not has_node_taints:
            # No controller removes the taint that this plugin adds to each Node.
            flags.append("--disable-admission-plugins=TaintNodesByCondition")
        if audited:
            flags += audit_flags(folder, self.audit_log)
        self.process = Process(
            f"apiserver-{name}",
            [tools.path("k8s", "kube-apiserver"), *override_flags(flags, others)],
            folder / f"apiserver-{name}.log",
            go_environment(),
        )

    def start(self) -> None:
        """Start the server and wait until it is ready.

        Raises ProcessError if it fails.
        """
        self.process.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the server is ready.

        Raises ProcessError if its process exits first.
        """
        self.process.wait_ready(self._ready)

    def stop(self) -> None:
        """Close the client's connections and stop the API server."""
        self.client.close()
        self.process.stop()

    def _ready(self) -> bool:
        try:
            return self.client.request("GET", "/readyz") == {"text": "ok"}
        except (ApiError, OSError, HTTPException):
            return False


class ControllerManager:
    """A kube-controller-manager that runs only the controllers for owner references and namespaces.

    Its garbage collector discovers kinds when it starts and then only every 30 seconds, so start it
    after all CustomResourceDefinitions are established.
    """

    def __init__(
        self,
        tools: Toolbox,
        pki: Pki,
        apiserver: ApiServer,
        folder: Path,
        others: Sequence[str] = (),
    ) -> None:
        """Define the process, without starting it.

        ``others`` are flags that replace those with the same name.
        """
        kubeconfig = apiserver.kubeconfig
        self._port = free_port()
        flags = [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--tls-cert-file={pki.serving.cert}",
            f"--tls-private-key-file={pki.serving.key}",
            "--leader-elect=false",
            f"--service-account-private-key-file={pki.service_account.key}",
            f"--root-ca-file={pki.ca}",
            "--use-service-account-credentials=false",
            f"--controllers={','.join(_CONTROLLERS)}",
            # With the default of 20 requests a second, the deletion of a namespace with many
            # objects is slow.
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]
        self._health = KubeClient(f"https://127.0.0.1:{self._port}", Credentials(pki.ca))
        binary = tools.path("k8s", "kube-controller-manager")
        argv: list[str | Path] = [binary, *override_flags(flags, others)]
        name = f"kcm-{apiserver.name}"
        self.process = Process(name, argv, folder / f"{name}.log", go_environment())

    def start(self) -> None:
        """Start the controllers and wait until they are ready.

        Raises ProcessError if they fail.
        """
        self.process.start()
        self.process.wait_ready(self._ready)
        self._health.close()

    def stop(self) -> None:
        """Stop kube-controller-manager."""
        self.process.stop()

    def _ready(self) -> bool:
        try:
            return self._health.request("GET", "/healthz") == {"text": "ok"}
        except (ApiError, OSError, HTTPException):
            return False


def _etcd_tls_flags(tls: EtcdTLS) -> list[str]:
    flags = []
    for prefix in ("", "peer-"):
        flags += [
            f"--{prefix}cert-file={tls.server.cert}",
            f"--{prefix}key-file={tls.server.key}",
            f"--{prefix}trusted-ca-file={tls.ca}",
            f"--{prefix}client-cert-auth",
        ]
    return flags


def override_flags(flags: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return ``flags`` without those that ``others`` also sets, followed by ``others``."""
    names = {each.partition("=")[0] for each in others}
    return [*(each for each in flags if each.partition("=")[0] not in names), *others]


def _apiserver_flags(pki: Pki, etcd: EtcdAddress, name: str, port: int, address: str) -> list[str]:
    return [
        f"--etcd-servers={etcd.url}",
        f"--etcd-cafile={etcd.tls.ca}",
        f"--etcd-certfile={etcd.tls.client.cert}",
        f"--etcd-keyfile={etcd.tls.client.key}",
        # One etcd holds the data of several API servers.
        f"--etcd-prefix=/{name}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--secure-port={port}",
        f"--tls-cert-file={pki.serving.cert}",
        f"--tls-private-key-file={pki.serving.key}",
        f"--client-ca-file={pki.ca}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki.service_account.cert}",
        f"--service-account-signing-key-file={pki.service_account.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # No Pod uses the Service `kubernetes`, and its endpoints must not be loopback addresses.
        "--endpoint-reconciler-type=none",
        "--allow-privileged=true",
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        "--profiling=false",
    ]
