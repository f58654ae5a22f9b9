"""Simulate what runs on machines that nothing boots: an API server and Nodes.

Simulated infrastructure creates no machine that could serve the endpoint of its cluster.  If the
endpoint is an address of this computer, a real API server with the cluster's CA starts there once a
control plane machine has a provider ID, and each machine becomes a Node.
"""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from http.client import HTTPException

import trustme

from capsmith.clusters.processes.cluster import Base
from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import ApiServer
from capsmith.errors import CapsmithError
from capsmith.judge.running.cluster_session import WHOLE, ClusterSession
from capsmith.judge.running.contract import endpoint, provider_id
from capsmith.judge.running.objects import CLUSTER_NAME, CONTROL_PLANE
from capsmith.judge.running.session import make_node, register_node, report_node_ready

_LOOPBACK = ("127.0.0.1", "localhost")
_STEP_SECONDS = 0.3


class Booting:
    """A context in which the machines of the whole cluster appear to run."""

    def __init__(self, base: Base, session: ClusterSession, report: Callable[[str], None]) -> None:
        """Define it; ``report`` gets the reason if the API server does not start."""
        self._base = base
        self._session = session
        self._report = report
        self._server: ApiServer | None = None
        self._stopping = threading.Event()
        # The server ends with the thread that started it, so the thread lasts as long.
        self._thread = threading.Thread(target=self._run, name="booting", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        if self._server is not None:
            self._server.stop()

    def _run(self) -> None:
        while not self._stopping.wait(_STEP_SECONDS):
            # The next step starts from what is stored then.
            with suppress(ApiError, OSError, HTTPException):
                try:
                    self._step()
                except CapsmithError as error:
                    self._report(str(error))
                    return

    def _step(self) -> None:
        session = self._session
        machines = session.client.list(
            session.core.api_version, "Machine", session.namespace, {CLUSTER_NAME: WHOLE}
        )
        machines = [each for each in machines if provider_id(each)]
        if self._server is None:
            self._server = self._started(machines)
        if self._server is not None:
            for each in machines:
                self._register(self._server, each)

    def _started(self, machines: list[JSON]) -> ApiServer | None:
        """Start the API server if it has an address, a machine and a CA."""
        session = self._session
        if not any(CONTROL_PLANE in each["metadata"]["labels"] for each in machines):
            return None
        cluster = session.client.find(session.core.api_version, "Cluster", WHOLE, session.namespace)
        address = endpoint(cluster or {})
        secret = session.client.find("v1", "Secret", f"{WHOLE}-ca", session.namespace)
        if secret is None or address.get("host") not in _LOOPBACK:
            return None
        name = f"workload-{session.namespace}"
        folder = self._base.folder / name
        authority = trustme.CA.from_pem(*(_decoded(secret, key) for key in ("tls.crt", "tls.key")))
        pki = Pki(folder / "pki", authority)
        server = ApiServer(
            self._base.tools, pki, self._base.etcd, folder, name, int(address["port"])
        )
        # A server that does not become ready is stopped: the next step would find its port taken.
        with ExitStack() as failed:
            failed.callback(server.stop)
            server.start()
            failed.pop_all()
        return server

    def _register(self, server: ApiServer, machine: JSON) -> None:
        metadata = machine["metadata"]
        if (machine.get("status") or {}).get("nodeRef") or "deletionTimestamp" in metadata:
            return
        made = make_node(metadata["name"], provider_id(machine))
        register_node(server.client, made)
        report_node_ready(server.client, made)


def _decoded(secret: JSON, key: str) -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key) or "")
