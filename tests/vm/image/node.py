#!/usr/bin/python3
"""What generated bootstrap data run: make this machine a node of its cluster.

`init` starts etcd and an API server, and answers machines that join; `join` requests a certificate
with the token of the bootstrap data.  Both then start the kubelet.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import ipaddress
import json
import re
import secrets
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path("/etc/libvirt-node")
PKI = FOLDER / "pki"
INSTANCE = Path("/run/cloud-init/instance-data.json")
JOIN_PORT = 9345
PATIENCE = 1500.0
_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
_CLIENT = "extendedKeyUsage=clientAuth"

Settings = Mapping[str, Any]


def say(text: str) -> None:
    """Write to the console, as cloud-init does with all output."""
    print(f"node: {text}", flush=True)


def openssl(*arguments: str | Path, data: bytes | None = None) -> bytes:
    """Run openssl, which must succeed."""
    return subprocess.run(
        ["openssl", *arguments], input=data, check=True, stdout=subprocess.PIPE
    ).stdout


def key_of(name: str) -> Path:
    """Return the file of a private key; create it if it is missing."""
    key = PKI / f"{name}.key"
    if not key.exists():
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
    return key


def request_of(name: str) -> bytes:
    """Return a request whose subject is not read."""
    return openssl("req", "-new", "-key", key_of(name), "-subj", "/CN=node")


def sign(request: bytes, subject: str, extensions: str) -> bytes:
    """Return a certificate for the key of a request, with this subject."""
    with tempfile.NamedTemporaryFile("w") as file:
        file.write(extensions)
        file.flush()
        serial = f"0x{secrets.token_hex(8)}"
        authority = ("-CA", PKI / "ca.crt", "-CAkey", PKI / "ca.key", "-set_serial", serial)
        named = ("-subj", subject, "-days", "365", "-extfile", file.name)
        return openssl("x509", "-req", *authority, *named, data=request)


def kubelet_certificate(request: bytes, node: str) -> bytes:
    """Return the certificate of a kubelet, with which it may change its own Node only."""
    return sign(request, f"/O=system:nodes/CN=system:node:{node}", _CLIENT)


def is_valid(token: str) -> bool:
    """Return whether a token is signed with the key of the CA, and still valid."""
    claim, _, signature = token.rpartition(".")
    key = (PKI / "ca.key").read_bytes()
    wanted = hmac.new(key, claim.encode(), hashlib.sha256).hexdigest()
    expiry = claim.rpartition(".")[2]
    return hmac.compare_digest(signature, wanted) and int(expiry) > time.time()


class Join(BaseHTTPRequestHandler):
    """Sign the certificate of a kubelet for a valid token."""

    def do_POST(self) -> None:
        """Answer a machine that joins."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not _NAME.fullmatch(asked["node"]) or not is_valid(asked["token"]):
            self.send_error(403)
            return
        certificate = kubelet_certificate(asked["request"].encode(), asked["node"])
        self.send_response(200)
        self.end_headers()
        self.wfile.write(certificate)


def serve() -> None:
    """Answer machines that join, until this process is ended."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(PKI / "server.crt", PKI / "server.key")
    server = ThreadingHTTPServer(("", JOIN_PORT), Join)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


def service(name: str, *command: str) -> None:
    """Start a program, now and at each start of the machine."""
    lines = ["[Service]", f"ExecStart={' '.join(command)}", "Restart=always", "RestartSec=2"]
    lines += ["[Install]", "WantedBy=multi-user.target"]
    Path(f"/etc/systemd/system/{name}.service").write_text("\n".join(lines) + "\n")
    subprocess.run(["systemctl", "enable", "--now", "--no-block", name], check=True)
    say(f"{name} is started")


def wait(probe: Callable[[], bool], what: str) -> None:
    """Wait until a probe is true."""
    began = time.monotonic()
    while not probe():
        if time.monotonic() - began > PATIENCE:
            raise SystemExit(f"node: not within {PATIENCE:.0f} s: {what}")
        time.sleep(2)
    say(f"{what}, after {time.monotonic() - began:.0f} s")


def request(url: str, data: bytes | None = None) -> bytes | None:
    """Return the answer of a server of this cluster; None if it gives none."""
    context = ssl.create_default_context(cafile=str(PKI / "ca.crt"))
    try:
        with urllib.request.urlopen(url, data, timeout=30, context=context) as answer:
            found: bytes = answer.read()
            return found
    except OSError:
        return None


def claim_address(address: str) -> None:
    """Take the address of the API server, as kube-vip would among several machines."""
    wait(lambda: bool(_ip("route", "show", "default")), "the network is up")
    device = str(_ip("route", "show", "default")[0]["dev"])
    own = _ip("address", "show", device)[0]["addr_info"]
    prefix = next(each["prefixlen"] for each in own if each["family"] == "inet")
    subprocess.run(["ip", "address", "replace", f"{address}/{prefix}", "dev", device], check=True)
    say(f"{device} has {address}")


def _ip(*arguments: str) -> list[dict[str, Any]]:
    done = subprocess.run(["ip", "-json", *arguments], check=True, stdout=subprocess.PIPE)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def init(settings: Settings, node: str) -> None:
    """Start a control plane with one member."""
    host, port = settings["endpoint"].rsplit(":", 1)
    claim_address(host)
    services = settings["serviceCIDRs"][0] if settings["serviceCIDRs"] else "10.96.0.0/12"
    first = ipaddress.ip_network(services)[1]
    names = f"IP:{host},IP:127.0.0.1,IP:{first},DNS:{node},DNS:kubernetes.default.svc"
    server = sign(request_of("server"), "/CN=kube-apiserver", f"subjectAltName={names}")
    (PKI / "server.crt").write_bytes(server)
    client = sign(request_of("client"), "/O=system:masters/CN=kube-apiserver", _CLIENT)
    (PKI / "client.crt").write_bytes(client)
    openssl("pkey", "-in", key_of("sa"), "-pubout", "-out", PKI / "sa.pub")
    service("etcd", *_etcd())
    service("kube-apiserver", *_apiserver(host, port, services))
    wait(lambda: request(f"https://{host}:{port}/readyz") == b"ok", "the API server is ready")
    service("node-join", "/usr/bin/python3", __file__, "serve")
    (PKI / "kubelet.crt").write_bytes(kubelet_certificate(request_of("kubelet"), node))


def _etcd() -> list[str]:
    client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
    flags = {
        "data-dir": "/var/lib/etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        # A machine without KVM stands still for seconds.
        "heartbeat-interval": "1000",
        "election-timeout": "10000",
        "log-level": "warn",
    }
    return ["/usr/local/bin/etcd", *(f"--{key}={value}" for key, value in flags.items())]


def _apiserver(host: str, port: str, services: str) -> list[str]:
    flags = {
        "etcd-servers": "http://127.0.0.1:2379",
        "secure-port": port,
        "advertise-address": host,
        "authorization-mode": "Node,RBAC",
        "client-ca-file": PKI / "ca.crt",
        "tls-cert-file": PKI / "server.crt",
        "tls-private-key-file": PKI / "server.key",
        "kubelet-client-certificate": PKI / "client.crt",
        "kubelet-client-key": PKI / "client.key",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": PKI / "sa.pub",
        "service-account-signing-key-file": PKI / "sa.key",
        "service-cluster-ip-range": services,
        "profiling": "false",
    }
    return ["/usr/local/bin/kube-apiserver", *(f"--{key}={value}" for key, value in flags.items())]


def join(settings: Settings, node: str) -> None:
    """Get the certificate of a worker."""
    if settings["role"] == "control-plane":
        raise SystemExit("node: etcd of this image has one member, and so has the control plane")
    host = settings["endpoint"].rsplit(":", 1)[0]
    asked = {"node": node, "token": settings["token"], "request": request_of("kubelet").decode()}
    body = json.dumps(asked).encode()

    def joined() -> bool:
        certificate = request(f"https://{host}:{JOIN_PORT}/", body)
        (PKI / "kubelet.crt").write_bytes(certificate or b"")
        return certificate is not None

    wait(joined, "the control plane has signed the certificate")


def start_kubelet(settings: Settings, node: str, provider_id: str) -> None:
    """Start the kubelet, and a network for pods that its Node needs to be ready."""
    pods = settings["podCIDRs"][0] if settings["podCIDRs"] else "10.244.0.0/16"
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pods}]]},
    }
    network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    _write(Path("/etc/cni/net.d/10-pods.conflist"), network)
    config, kubeconfig = FOLDER / "kubelet.json", FOLDER / "kubelet.kubeconfig"
    _write(config, _kubelet(settings, provider_id))
    _write(kubeconfig, _kubeconfig(settings["endpoint"]))
    flags = {"config": config, "kubeconfig": kubeconfig, "hostname-override": node}
    service("kubelet", "/usr/local/bin/kubelet", *(f"--{key}={flags[key]}" for key in flags))


def _kubelet(settings: Settings, provider_id: str) -> dict[str, Any]:
    taints = [re.fullmatch(r"([^=:]+)=?([^:]*):(.+)", each) for each in settings["taints"]]
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": str(PKI / "ca.crt")}},
        "cgroupDriver": "systemd",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "providerID": provider_id,
        "registerWithTaints": [
            {"key": each[1], "value": each[2], "effect": each[3]} for each in taints if each
        ],
    }


def _kubeconfig(endpoint: str) -> dict[str, Any]:
    cluster = {"server": f"https://{endpoint}", "certificate-authority": str(PKI / "ca.crt")}
    user = {"client-certificate": str(PKI / "kubelet.crt"), "client-key": str(key_of("kubelet"))}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": cluster}],
        "users": [{"name": "kubelet", "user": user}],
        "contexts": [{"name": "own", "context": {"cluster": "cluster", "user": "kubelet"}}],
        "current-context": "own",
    }


def _write(path: Path, content: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


def main() -> None:
    """Run the command that the arguments name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=["init", "join", "serve"])
    parser.add_argument("--config", type=Path, default=FOLDER / "node.json")
    arguments = parser.parse_args()
    if arguments.action == "serve":
        serve()
    settings = json.loads(arguments.config.read_text())
    instance = json.loads(INSTANCE.read_text())
    node = instance["v1"]["local_hostname"]
    provider_id = instance["ds"]["meta_data"]["provider_id"]
    say(f"{arguments.action} of {node}, {provider_id}")
    {"init": init, "join": join}[arguments.action](settings, node)
    start_kubelet(settings, node, provider_id)


if __name__ == "__main__":
    main()
