"""The API server that the first control plane machine boots, with the cluster's own CA.

A real machine takes the CA from its bootstrap data. Here it is read from the Secret in which the
control plane provider under test keeps it; the API server itself is real.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from contextlib import ExitStack

import trustme

from capsmith.clusters.lab.simulated.kubelet import Kubelet
from capsmith.clusters.lab.simulated.loop import Loop
from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from tests.e2e.harness.cloud import SimulatedCloud

_NUMBERS = itertools.count(1)


class BootingCluster:
    """The machines of one workload cluster, seen from inside; see :meth:`start`."""

    def __init__(
        self,
        base: Base,
        cloud: SimulatedCloud,
        port: int,
        namespace: str,
        cluster: str,
        kubelet: type[Kubelet] = Kubelet,
    ) -> None:
        self._base = base
        self._kubelet_type = kubelet
        self._cloud = cloud
        self._port = port
        self._namespace = namespace
        self._cluster = cluster
        self._name = f"workload-{cluster}-{next(_NUMBERS)}"
        self._folder = base.folder / self._name
        self._log = self._folder / "booting.log"
        self._kubelet: Kubelet | None = None
        self.server: ApiServer | None = None
        self._loop: Loop | None = None

    def start(self, management: Callable[[], KubeClient]) -> None:
        """Wait in a thread for the cluster's first server, boot it, and then act as its kubelet.

        `management` is called each time, because a cluster can be moved.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        self._loop = Loop(self._name, self._log, [lambda: self._tick(management())])
        self._loop.start()

    def stop(self) -> None:
        """Stop everything."""
        if self._loop is not None:
            self._loop.stop()
        if self.server is not None:
            self.server.stop()

    def _tick(self, management: KubeClient) -> None:
        if self._kubelet is not None:
            self._kubelet.tick()
            return
        secret = management.find("v1", "Secret", f"{self._cluster}-ca", self._namespace)
        if secret is None or not self._cloud.servers(self._cluster):
            return
        if self.server is None:
            pki = Pki(self._folder / "pki", _authority(secret))
            server = ApiServer(
                self._base.tools, pki, self._base.etcd, self._folder, self._name, self._port
            )
            with ExitStack() as failed:
                failed.callback(server.stop)
                server.start()
                failed.pop_all()
            self.server = server
        self._kubelet = self._kubelet_type(
            self.server.client, self._cloud, self._name, self._log, self._cluster
        )


def _authority(secret: JSON) -> trustme.CA:
    certificate, key = (base64.b64decode(secret["data"][name]) for name in ("tls.crt", "tls.key"))
    return trustme.CA.from_pem(certificate, key)
