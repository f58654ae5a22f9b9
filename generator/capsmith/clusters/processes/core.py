"""Run Cluster API's core manager as a process, under its own ServiceAccount."""

from __future__ import annotations

import shutil
from pathlib import Path

from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig, request_token
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import (
    Process,
    free_port,
    go_environment,
    probe_http,
    probe_port,
)
from capsmith.clusters.processes.servers import ApiServer
from capsmith.clusters.processes.tools import Toolbox

NAMESPACE = "capi-system"
SERVICE_ACCOUNT = "capi-manager"

# The rate limit of one reconcile per object and second, and the 15 s steps of the preflight checks,
# would dominate the run time.  The rate limit was added in v1.13, when the machine pool gate was
# enabled by default.
_RATE_LIMITED_SINCE = (1, 13)
_GATES = "ClusterTopology=true,MachineSetPreflightChecks=false"


class CapiCore:
    """Core's manager from one release series. clusterctl must have installed its components.

    `gates` are additional feature gates, such as `RuntimeSDK=true`.
    """

    def __init__(
        self,
        tools: Toolbox,
        series: str,
        pki: Pki,
        apiserver: ApiServer,
        folder: Path,
        gates: str = "",
    ) -> None:
        self._pki = pki
        self._apiserver = apiserver
        self._kubeconfig = folder / f"core-{apiserver.name}.kubeconfig"
        self._health_port, diagnostics, self.webhook_port = (free_port() for _ in range(3))
        self._argv: list[str | Path] = [
            tools.path(f"capi-{series}", "capi-manager"),
            f"--kubeconfig={self._kubeconfig}",
            f"--diagnostics-address=127.0.0.1:{diagnostics}",
            "--insecure-diagnostics=true",
            f"--health-addr=127.0.0.1:{self._health_port}",
            f"--webhook-port={self.webhook_port}",
            f"--webhook-cert-dir={self._webhook_certificate(folder)}",
        ]
        self._name = f"core-{apiserver.name}"
        self._log = folder / f"{self._name}.log"
        self.process = self._process(
            f"--feature-gates={','.join(filter(None, (_usual_gates(series), gates)))}"
        )

    def start(self) -> None:
        """Start the process, and wait until it is ready and serves its webhooks.

        Raises ProcessError if the process exits or does not become ready.
        """
        client: KubeClient = self._apiserver.client
        token = request_token(client, NAMESPACE, SERVICE_ACCOUNT)
        self._kubeconfig.write_text(
            render_token_kubeconfig(self._apiserver.url, self._pki.ca, token)
        )
        self.process.start()
        self.process.wait_ready(probe_http(f"http://127.0.0.1:{self._health_port}/readyz"))
        self.process.wait_ready(probe_port(self.webhook_port))

    def restart_with_default_gates(self) -> None:
        """Restart with core's default feature gates: slower, and without ClusterClasses."""
        self.stop()
        self.process = self._process()
        self.start()

    def stop(self) -> None:
        """Stop the core manager's process."""
        self.process.stop()

    def _process(self, *more: str) -> Process:
        return Process(self._name, [*self._argv, *more], self._log, go_environment())

    def _webhook_certificate(self, folder: Path) -> Path:
        target = folder / "webhook-certificate"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._pki.serving.cert, target / "tls.crt")
        shutil.copyfile(self._pki.serving.key, target / "tls.key")
        return target


def _usual_gates(series: str) -> str:
    """Return the default feature gates of a release series of core."""
    numbers = tuple(int(part) for part in series.removeprefix("v").split("."))
    is_limited = numbers >= _RATE_LIMITED_SINCE
    return f"{_GATES},{'ReconcilerRateLimiting=false' if is_limited else 'MachinePool=true'}"
