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
_CRD = "CustomResourceDefinition"
_UNUSED = ("admissionregistration.k8s.io", "cert-manager.io")
_COUNTED = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.M)
_LABEL = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Infrastructure:
    """The kinds of a provider, and the specs that the load creates."""

    group: str
    version: str
    cluster_kind: str
    machine_kind: str
    cluster_spec: dict[str, Any]
    machine_spec: dict[str, Any]
    pools: tuple[str, ...] = ()
    """Plurals of further kinds whose requests are counted."""

    @property
    def clusters(self) -> str:
        """Plural of the cluster kind."""
        return f"{self.cluster_kind.lower()}s"

    @property
    def machines(self) -> str:
        """Plural of the machine kind."""
        return f"{self.machine_kind.lower()}s"


@dataclass(frozen=True)
class Cluster:
    """The API server and the provider that is installed in it."""

    server: ApiServer
    etcd: Etcd
    pki: Pki
    kubeconfig: Path
    """Of the provider's own ServiceAccount."""
    namespace: str
    """Of the provider."""
    repository: Path
    """Of the provider, or an empty folder."""
    infrastructure: Infrastructure

    @property
    def group(self) -> str:
        return self.infrastructure.group

    @property
    def version(self) -> str:
        return self.infrastructure.version

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
        infrastructure = self.infrastructure
        kinds = {infrastructure.machines, infrastructure.clusters, *infrastructure.pools}
        kinds |= {"machines", "clusters", "machinepools", "secrets", "events"}
        text = self.client.request("GET", "/metrics")["text"]
        for labels, value in _COUNTED.findall(text):
            label = dict(_LABEL.findall(labels))
            if label["resource"] in kinds:
                counted[label["verb"], label["code"]] += int(float(value))
        return counted


@contextmanager
def start_servers(folder: Path) -> Iterator[tuple[Toolbox, ApiServer, Etcd, Pki]]:
    """Start an API server without any kinds in ``folder``, and stop it."""
    # The default is for small labs: with 10,000 machines, an API server that may not use more does
    # little but collect garbage.
    os.environ.setdefault("GOMEMLIMIT", "8GiB")
    tools = toolbox(["k8s", core_module(default_core())])
    pki = Pki(folder / "pki")
    etcd = Etcd(tools, folder)
    etcd.start()
    server = ApiServer(tools, pki, etcd, folder, "benchmark")
    try:
        server.start()
        yield tools, server, etcd, pki
    finally:
        server.stop()
        etcd.stop()


@contextmanager
def cluster(folder: Path, kinds: str = "", *, with_credentials: bool = False) -> Iterator[Cluster]:
    """Start everything in ``folder``, and stop it; ``kinds`` are further ones of the provider."""
    with start_servers(folder) as servers:
        yield install(*servers, folder, kinds, with_credentials=with_credentials)


def install(
    tools: Toolbox,
    server: ApiServer,
    etcd: Etcd,
    pki: Pki,
    folder: Path,
    kinds: str = "",
    *,
    with_credentials: bool = False,
) -> Cluster:
    """Install the CRDs of core and a generated provider."""
    install_core_kinds(tools, server)
    repository = _generate(folder, kinds, with_credentials=with_credentials)
    documents = render_manifests(repository)
    crds = [each["spec"] for each in documents if each["kind"] == _CRD]
    machine = next(spec for spec in crds if spec["names"]["kind"] == "AcmeMachine")
    infrastructure = Infrastructure(
        machine["group"],
        machine["versions"][0]["name"],
        "AcmeCluster",
        "AcmeMachine",
        {"region": "north"},
        {"size": "small", "image": "image"},
        ("acmepools",),
    )
    namespace, kubeconfig = install_provider(server, pki, documents, folder)
    return Cluster(server, etcd, pki, kubeconfig, namespace, repository, infrastructure)


def install_core_kinds(tools: Toolbox, server: ApiServer) -> None:
    """Install the CRDs of core that a provider watches."""
    text = tools.path(core_module(default_core()), "core-components.yaml").read_text(
        encoding="utf-8"
    )
    for crd in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if _is_wanted(crd):
            crd["spec"].pop("conversion", None)  # core is not there to convert
            server.client.apply(crd)


def _is_wanted(document: dict[str, Any] | None) -> bool:
    if document is None or document["kind"] != _CRD:
        return False
    return document["spec"]["names"]["kind"] in _KINDS


def _generate(folder: Path, kinds: str, *, with_credentials: bool) -> Path:
    """The example, as a rule without credentials, so that nothing but machines is measured."""
    example = (ROOT / "examples" / "acme" / "provider.yaml").read_text(encoding="utf-8")
    text = "".join(
        line
        for line in example.splitlines(keepends=True)
        if with_credentials or not line.startswith("credentials:")
    )
    report = create(text + kinds, folder / "provider")
    assert report.exit_code == 0, report.findings
    return folder / "provider"


def render_manifests(repository: Path) -> list[dict[str, Any]]:
    """Return the manifests of a generated repository."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    built = subprocess.run(
        ["kubectl", "kustomize", "config/default"],
        cwd=repository,
        env={**os.environ, "PATH": tools},
        check=True,
        capture_output=True,
        text=True,
    )
    return [document for document in yaml.safe_load_all(built.stdout) if document]


def install_provider(
    server: ApiServer, pki: Pki, documents: list[dict[str, Any]], folder: Path
) -> tuple[str, Path]:
    """Install all manifests but the Deployment and webhooks, which processes have no use for.

    Returns the provider's namespace, and a kubeconfig for its ServiceAccount.
    """
    crds = [each for each in documents if each["kind"] == _CRD]
    others = [each for each in documents if each["kind"] not in ("Deployment", _CRD)]
    for document in sorted(others, key=lambda each: each["kind"] != "Namespace"):
        if document["apiVersion"].partition("/")[0] not in _UNUSED:
            server.client.apply(document)
    for crd in crds:
        server.client.apply(crd)
    eventually(lambda: _established(server.client), timeout=30, what="CRDs established")
    (account,) = (each["metadata"] for each in documents if each["kind"] == "ServiceAccount")
    token = request_token(server.client, account["namespace"], account["name"])
    kubeconfig = folder / "controller.kubeconfig"
    kubeconfig.write_text(render_token_kubeconfig(server.url, pki.ca, token), encoding="utf-8")
    return account["namespace"], kubeconfig


def _established(client: KubeClient) -> bool:
    crds: list[dict[str, Any]] = client.list("apiextensions.k8s.io/v1", _CRD)
    return all(
        any(
            c["type"] == "Established" and c["status"] == "True"
            for c in crd.get("status", {}).get("conditions") or []
        )
        for crd in crds
    )
