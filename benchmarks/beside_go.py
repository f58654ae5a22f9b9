"""``python -m benchmarks.beside_go``: the generated controller beside a provider in Go.

The one in Go is Cluster API's own provider for development, with servers in memory; see README.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.cluster import (
    Cluster,
    Infrastructure,
    cluster,
    install_core_kinds,
    install_provider,
    start_servers,
)
from benchmarks.runtime import Contender, generated, measure, print_columns
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process, free_port, probe_http
from capsmith.clusters.processes.tools.build import read_built
from capsmith.clusters.processes.tools.catalogue import Binary, Module

_MODULES = Path(__file__).parent / "modules"
_TEST = "sigs.k8s.io/cluster-api/test"
_MANIFESTS = "components.yaml"
_CAPD = Module(
    folder="capd",
    binaries=(Binary("manager", f"{_TEST}/infrastructure/docker"),),
    manifests={_MANIFESTS: "infrastructure/docker/config/default"},
    sources_of=_TEST,
)
_KINDS = Infrastructure(
    "infrastructure.cluster.x-k8s.io",
    "v1beta2",
    "DevCluster",
    "DevMachine",
    {"backend": {"inMemory": {}}},
    {"backend": {"inMemory": {}}},
)
_UNLIMITED = ("--kube-api-qps=10000", "--kube-api-burst=10000")


def build_capd() -> Path:
    """Return the folder with the provider in Go and its manifests, building it if it is missing.

    Raises ToolsUnavailable if Go is missing or the build fails.
    """
    return read_built(_CAPD, _MODULES, partial(print, flush=True))


@contextmanager
def cluster_of_capd(built: Path, folder: Path) -> Iterator[Cluster]:
    """Start an API server with the kinds of core and of the provider in Go."""
    documents = list(yaml.load_all((built / _MANIFESTS).read_text(), Loader=yaml.CSafeLoader))
    for document in documents:
        if document["kind"] == "CustomResourceDefinition":
            document["spec"].pop("conversion", None)  # its webhooks are not installed
    with start_servers(folder) as (tools, server, etcd, pki):
        install_core_kinds(tools, server)
        namespace, kubeconfig = install_provider(server, pki, documents, folder)
        yield Cluster(server, etcd, pki, kubeconfig, namespace, folder, _KINDS)


def capd(built: Path, name: str, flags: tuple[str, ...], api: Cluster, folder: Path) -> Contender:
    """Return the provider in Go with its default flags and ``flags``."""
    health = free_port()
    command = [str(built / "manager"), f"--health-addr=127.0.0.1:{health}", "--v=0"]
    command += ["--diagnostics-address=127.0.0.1:0", "--insecure-diagnostics"]
    command += [f"--webhook-port={free_port()}", f"--webhook-cert-dir={_serving(api.pki, folder)}"]
    environment: dict[str, Any] = {
        **os.environ,
        "KUBECONFIG": str(api.kubeconfig),
        "POD_IP": "127.0.0.1",
    }
    process = Process(name, [*command, *flags], folder / f"{name}.log", environment)
    return Contender(name, process, probe_http(f"http://127.0.0.1:{health}/readyz"), None)


def _serving(pki: Pki, folder: Path) -> Path:
    """Return a folder with the certificate that the webhook server cannot start without."""
    target = folder / "webhook"
    target.mkdir()
    shutil.copyfile(pki.serving.cert, target / "tls.crt")
    shutil.copyfile(pki.serving.key, target / "tls.key")
    return target


def _run(
    name: str, count: int, start: Callable[[Path], Any], make: Callable[[Cluster, Path], Contender]
) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder, start(Path(folder)) as api:
        print(f"{name}: {count:,} pairs", file=sys.stderr, flush=True)
        return measure(api, make(api, Path(folder)), count)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, action="append", help="1000 and 3000 by default")
    options = parser.parse_args()
    built = build_capd()
    with_capd = partial(cluster_of_capd, built)
    for count in options.objects or (1000, 3000):
        columns = {"generated": _run("generated", count, cluster, generated)}
        for name, flags in (("Go", ()), ("Go-unlimited", _UNLIMITED)):
            columns[name] = _run(name, count, with_capd, partial(capd, built, name, flags))
        print_columns(count, columns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
