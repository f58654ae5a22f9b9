"""Managers of a generated repository as processes, under the permissions that are shipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import yaml

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process, free_port, probe_http
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools.build import Toolbox, find_kubectl
from capsmith.clusters.processes.wait import eventually
from tests.repositories import import_path

_NOT_HERE = {"Deployment", "Certificate", "Issuer"}
_POLICIES = {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? ([0-9.e+-]+)$", re.MULTILINE)
# Long enough not to be lost on a busy machine: see Installation.expire_lease.
_LEASE = (
    "--leader-elect-lease-duration=120s",
    "--leader-elect-renew-deadline=100s",
    "--leader-elect-retry-period=1s",
)


class Manager:
    """One process; several of them share a lease."""

    def __init__(self, argv: list[str], env: dict[str, str], log: Path, name: str) -> None:
        self._url = f"http://127.0.0.1:{free_port()}"
        address = self._url.removeprefix("http://")
        self.process = Process(name, [*argv, f"--diagnostics-address={address}"], log, env)

    def start(self) -> None:
        self.process.start()
        self.process.wait_ready(probe_http(f"{self._url}/readyz"))

    @property
    def leads(self) -> bool:
        return self.metrics().get("leader", 0.0) == 1.0

    def requests(self) -> dict[str, int]:
        """Return the number of sent requests, by verb."""
        found: dict[str, int] = {}
        for labels, number in self._samples("kube_requests_total"):
            verb = re.search('verb="([^"]*)"', labels)
            assert verb is not None
            found[verb[1]] = found.get(verb[1], 0) + int(number)
        return found

    def metrics(self) -> dict[str, float]:
        """Return the metrics without labels."""
        return {name: float(number) for name, labels, number in self._all() if not labels}

    def total(self, metric: str) -> int:
        """Return the sum of a metric over all its labels."""
        return int(sum(float(number) for _, number in self._samples(metric)))

    def complaints(self) -> list[str]:
        """Return log lines about refusals and bugs, which a working manager never writes."""
        lines = self.process.log.read_text(errors="replace").splitlines()
        return [line for line in lines if re.search(r"\b(403|422) [A-Z]|Traceback", line)]

    def _samples(self, name: str) -> list[tuple[str, float]]:
        return [(labels, float(n)) for found, labels, n in self._all() if found == name]

    def _all(self) -> list[tuple[str, str, str]]:
        with urllib.request.urlopen(f"{self._url}/metrics", timeout=60) as answer:
            return _SAMPLE.findall(answer.read().decode())


class Installation:
    """A component of a repository, installed on an API server."""

    def __init__(
        self,
        server: ApiServer,
        pki: Pki,
        repository: Path,
        config: str,
        *,
        revise: Callable[[JSON], None] = lambda document: None,
        policies: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """``revise`` changes a manifest in place before it is applied."""
        self.client = server.client
        self._folder = repository.parent
        (main,) = (repository / "src").glob("*/__main__.py")
        self._argv = [sys.executable, "-m", main.parent.name, "--leader-elect=true", *_LEASE]
        documents = _kustomized(repository / config / "default")
        left_out = _NOT_HERE if policies else _NOT_HERE | _POLICIES
        for document in documents:
            if document["kind"] not in left_out:
                revise(document)
                self.client.apply(document)
        (account,) = (each for each in documents if each["kind"] == "ServiceAccount")
        namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
        self.user = f"system:serviceaccount:{namespace}:{name}"
        token = request_token(self.client, namespace, name)
        kubeconfig = self._folder / f"{name}.kubeconfig"
        kubeconfig.write_text(render_token_kubeconfig(server.url, pki.ca, token))
        self._env = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": import_path(repository),
            "KUBECONFIG": str(kubeconfig),
            "POD_NAMESPACE": namespace,
            **(environment or {}),
        }
        self.token = token

    def manager(self, number: int, *arguments: str) -> Manager:
        """Return a manager with further arguments, without starting it."""
        log = self._folder / f"manager-{number}.log"
        return Manager([*self._argv, *arguments], self._env, log, f"m{number}")

    @contextmanager
    def managers(self, count: int) -> Iterator[list[Manager]]:
        """Return a context manager with running managers, the first of which leads."""
        made = [self.manager(number) for number in range(count)]
        try:
            for manager in made:
                manager.start()
                eventually(lambda: made[0].leads, what="the first manager leads")
            yield made
        finally:
            for manager in made:
                manager.process.stop()

    def expire_lease(self) -> None:
        """Shorten a killed leader's lease, so that another manager takes over a second later."""
        namespace = self._env["POD_NAMESPACE"]
        for lease in self.client.list("coordination.k8s.io/v1", "Lease", namespace):
            self.client.patch(lease, {"spec": {"leaseDurationSeconds": 1}})


def install_core_crds(client: KubeClient, tools: Toolbox, series: str, *names: str) -> None:
    """Install CRDs of a release of core without conversion, which would need core's webhook."""
    text = tools.path(f"capi-{series}", "core-components.yaml").read_text()
    for document in yaml.load_all(text, Loader=yaml.CSafeLoader):
        if document["kind"] != "CustomResourceDefinition":
            continue
        if document["metadata"]["name"] in names:
            document["spec"]["conversion"] = {"strategy": "None"}
            client.apply(document)
    for name in names:
        eventually(partial(_established, client, name), timeout=120, what=f"{name} is served")


def _established(client: KubeClient, name: str) -> bool:
    crd = client.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    conditions = crd.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _kustomized(folder: Path) -> list[JSON]:
    done = subprocess.run(
        [find_kubectl(), "kustomize", str(folder)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]
