"""A bare API server with the kinds of core and of the generated provider, nothing else running.

What core would do is done by :mod:`benchmarks.load`, so that every request that is counted is the
loader's, which are known, or the controller's.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.clusters.processes.tools import Toolbox, toolbox
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from capsmith.clusters.processes.wait import eventually
from capsmith.commands.generate import create

ROOT = Path(__file__).parent.parent
NAMESPACE = "default"
_KINDS = ("Cluster", "Machine", "MachinePool")
_COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Cluster:
    """The API server and the generated provider that is installed in it."""

    server: ApiServer
    etcd: Etcd
    pki: Pki
    kubeconfig: Path
    """Of the provider's own ServiceAccount."""
    namespace: str
    """Of the provider."""
    repository: Path
    group: str
    version: str
    resource: str
    """Plural of the machine kind."""

    @property
    def client(self) -> KubeClient:
        return self.server.client

    @property
    def package(self) -> str:
        (main,) = (self.repository / "src").glob("*/__main__.py")
        return main.parent.name

    def requests(self) -> Counter[tuple[str, str]]:
        """Requests so far for the kinds in question, by verb and code."""
        counted: Counter[tuple[str, str]] = Counter()
        kinds = {self.resource, "machines", "clusters", "acmeclusters", "secrets", "events"}
        kinds |= {"acmepools", "machinepools"}
        text = self.client.request("GET", "/metrics")["text"]
        for labels, value in _COUNTED.findall(text):
            label = dict(_LABEL.findall(labels))
            if label["resource"] in kinds:
                counted[label["verb"], label["code"]] += int(float(value))
        return counted


@contextmanager
def cluster(folder: Path, kinds: str = "") -> Iterator[Cluster]:
    """Start everything in ``folder``, and stop it; ``kinds`` are further ones of the provider."""
    tools = toolbox(["k8s", core_module(default_core())])
    pki = Pki(folder / "pki")
    etcd = Etcd(tools, folder)
    etcd.start()
    server = ApiServer(tools, pki, etcd, folder, "benchmark")
    try:
        server.start()
        yield install(tools, server, etcd, pki, folder, kinds)
    finally:
        server.stop()
        etcd.stop()


def install(
    tools: Toolbox, server: ApiServer, etcd: Etcd, pki: Pki, folder: Path, kinds: str = ""
) -> Cluster:
    """Install the CRDs of core and a generated provider."""
    text = tools.path(core_module(default_core()), "core-components.yaml").read_text(
        encoding="utf-8"
    )
    for crd in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if _is_wanted(crd):
            crd["spec"].pop("conversion", None)  # core is not there to convert
            server.client.apply(crd)
    return _installed(server, etcd, pki, _generate(folder, kinds), folder)


def _is_wanted(document: dict[str, Any] | None) -> bool:
    if document is None or document["kind"] != "CustomResourceDefinition":
        return False
    return document["spec"]["names"]["kind"] in _KINDS


def _generate(folder: Path, kinds: str) -> Path:
    """The example without credentials, so that nothing but machines is measured."""
    example = (ROOT / "examples" / "acme" / "provider.yaml").read_text(encoding="utf-8")
    text = "".join(
        line for line in example.splitlines(keepends=True) if not line.startswith("credentials:")
    )
    report = create(text + kinds, folder / "provider")
    assert report.exit_code == 0, report.findings
    return folder / "provider"


def _installed(server: ApiServer, etcd: Etcd, pki: Pki, repository: Path, folder: Path) -> Cluster:
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    built = subprocess.run(
        ["kubectl", "kustomize", "config/default"],
        cwd=repository,
        env={**os.environ, "PATH": tools},
        check=True,
        capture_output=True,
        text=True,
    )
    documents = [document for document in yaml.safe_load_all(built.stdout) if document]
    crds = [each for each in documents if each["kind"] == "CustomResourceDefinition"]
    others = [each for each in documents if each["kind"] not in ("Deployment", crds[0]["kind"])]
    for document in sorted(others, key=lambda each: each["kind"] != "Namespace"):
        if "admissionregistration" not in document["apiVersion"]:
            server.client.apply(document)
    for crd in crds:
        server.client.apply(crd)
    eventually(lambda: _established(server.client), timeout=30, what="CRDs established")
    (account,) = (each["metadata"] for each in documents if each["kind"] == "ServiceAccount")
    token = request_token(server.client, account["namespace"], account["name"])
    kubeconfig = folder / "controller.kubeconfig"
    kubeconfig.write_text(render_token_kubeconfig(server.url, pki.ca, token), encoding="utf-8")
    machine = next(crd["spec"] for crd in crds if crd["spec"]["names"]["kind"] == "AcmeMachine")
    return Cluster(
        server,
        etcd,
        pki,
        kubeconfig,
        account["namespace"],
        repository,
        machine["group"],
        machine["versions"][0]["name"],
        machine["names"]["plural"],
    )


def _established(client: KubeClient) -> bool:
    crds: list[dict[str, Any]] = client.list("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    return all(
        any(
            c["type"] == "Established" and c["status"] == "True"
            for c in crd.get("status", {}).get("conditions") or []
        )
        for crd in crds
    )
