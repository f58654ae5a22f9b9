"""Start management clusters for a run: core, the releases to install, and their managers."""

from __future__ import annotations

import base64
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import trustme

from capsmith.clusters.processes.cluster import Base, ManagementCluster
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.component import ProviderRelease, ReleaseComponent
from capsmith.clusters.processes.errors import ProcessError, RequestError
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.clusters.processes.manager import ProviderManager
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.servers import ApiServer, Etcd
from capsmith.clusters.processes.tools import Toolbox
from capsmith.errors import CapsmithError
from capsmith.judge.running.cluster_session import WHOLE, ClusterSession
from capsmith.judge.running.contract import endpoint, provider_id
from capsmith.judge.running.objects import CLUSTER_NAME, CONTROL_PLANE
from capsmith.judge.running.session import make_node, register_node, report_node_ready

_INFRASTRUCTURE = "infrastructure"
# clusterctl installs the kubeadm providers unless a flag names others or none.
_NONE = "-"
_APPLY = (
    "Leave out metadata.namespace: such objects are created in the namespace of the run, after it "
    "exists. For another namespace, add the Namespace to the file."
)
_DEFAULTS = {"bootstrap": _NONE, "control-plane": _NONE}


class ManagerCommand(NamedTuple):
    """A component in a release, and the command that runs its manager."""

    component: ReleaseComponent
    argv: tuple[str, ...]


@dataclass(frozen=True)
class Installation:
    """The releases to install in each management cluster, and the managers to start."""

    releases: tuple[ProviderRelease, ...]
    commands: tuple[ManagerCommand, ...]
    """Commands that run the managers, at most one per provider type."""
    environment: Mapping[str, str]
    """Environment variables for the managers, in addition to those in their Deployments."""
    flags: tuple[str, ...]
    """Command-line flags for the managers, added after the flags in their Deployments."""
    variables: Mapping[str, str]
    """Values for clusterctl's variables, by name."""
    prerequisites: Sequence[JSON]
    """Objects to apply before the managers start, such as credentials.

    Objects of namespaced kinds without a namespace are left to the sessions.
    """


class RunningProvider:
    """A management cluster that runs core and the provider's managers."""

    def __init__(
        self, base: Base, name: str, series: str, clusterctl: Clusterctl, installed: Installation
    ) -> None:
        self.management = ManagementCluster(base, name, series, clusterctl)
        self._installed = installed
        self.managers = {
            component.type: ProviderManager(
                argv, component, self.management, installed.environment, installed.flags
            )
            for component, argv in installed.commands
        }
        """Managers by provider type."""

    @property
    def manager(self) -> ProviderManager:
        """Return the infrastructure provider's manager, or the first manager if there is none."""
        return self.managers.get(_INFRASTRUCTURE) or next(iter(self.managers.values()))

    def start(self) -> None:
        """Start all processes and install the releases.

        Raises CapsmithError if a process or an installation fails.
        """
        names = {component.type: component.name for component, _ in self._installed.commands}
        variables = dict(self._installed.variables)
        for manager in self.managers.values():
            variables |= manager.variables
        try:
            self.management.start({**_DEFAULTS, **names}, variables)
        except TimeoutError as error:
            raise ProcessError(str(error)) from error
        # Applied before the managers start, which may exit if their credentials are missing.
        for each in self._installed.prerequisites:
            apply_prerequisite(self.management.client, each)
        for manager in self.managers.values():
            manager.start()

    def stop(self) -> None:
        """Stop all processes and wait until they have exited."""
        with ExitStack() as ends:
            ends.callback(self.management.stop)
            for manager in self.managers.values():
                ends.callback(manager.stop)


def apply_prerequisite(client: KubeClient, obj: JSON) -> None:
    """Apply a prerequisite, unless it belongs into the namespace of a session.

    Raises RequestError if the API server rejects it.
    """
    try:
        is_namespaced = client.resolve(obj["apiVersion"], obj["kind"]).namespaced
        if not is_namespaced or obj["metadata"].get("namespace"):
            client.apply(obj)
    except (ApiError, LookupError) as error:
        name = f"{obj['kind']} {obj['metadata']['name']}"
        raise RequestError(f"{name} of --apply was not created: {error}", _APPLY) from error


class ManagementServers:
    """The first management cluster of a run, and a second one if a check moves clusters."""

    def __init__(
        self,
        base: Base,
        series: str,
        installed: Installation,
        folder: Path,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Define servers that write their logs to ``folder``, without starting them.

        The etcd of ``base`` must be running.  ``progress`` receives messages about the current
        step.
        """
        self._base = replace(base, folder=folder)
        self._series = series
        self._installed = installed
        self._progress = progress
        repository = ClusterctlRepository(folder / "repository")
        repository.add_core(base.tools, series, base.pki)
        for release in installed.releases:
            release.add_to(repository, base.pki.ca_bundle)
        self.clusterctl = Clusterctl(base.tools, series, repository.config, folder)
        self.first = self._define("conformance-first")
        self._second: RunningProvider | None = None

    def start(self) -> None:
        """Start the first management cluster.

        Raises CapsmithError if a process fails.
        """
        self._progress(f"starting kube-apiserver, core {self._series} and the managers")
        self.first.start()

    def start_target(self) -> KubeClient:
        """Start the second management cluster, and return a client for it."""
        if self._second is None:
            self._progress("starting a second management cluster")
            self._second = self._define("conformance-second")
            self._second.start()
        return self._second.management.client

    def move(self, namespace: str) -> None:
        """Move the clusters in a namespace to the second management cluster.

        Call :meth:`start_target` first.
        """
        if self._second is None:
            raise ValueError("There is no second management cluster.")
        target = self._second.management
        self.clusterctl.move(self.first.management.kubeconfig, target.kubeconfig, namespace)

    def check(self) -> None:
        """Raise ManagerEnded if one of the managers has ended by itself."""
        for each in (self.first, self._second):
            for manager in each.managers.values() if each is not None else ():
                manager.check()

    def find_logs(self) -> dict[str, Path]:
        """Return the paths of the managers' logs, by name."""
        running = [each for each in (self.first, self._second) if each is not None]
        managers = [manager for each in running for manager in each.managers.values()]
        return {manager.log.stem: manager.log for manager in managers}

    def booting(self, session: ClusterSession, report: Callable[[str], None]) -> Booting:
        """Return a context manager that simulates running machines while it is open.

        No machine boots: instead, a workload API server and Nodes are provided.  ``report``
        receives the reason if the API server does not start.
        """
        return Booting(self._base, session, report)

    def stop(self) -> None:
        """Stop all processes and wait until they have exited."""
        with ExitStack() as ends:
            for each in (self.first, self._second):
                if each is not None:
                    ends.callback(each.stop)

    def _define(self, name: str) -> RunningProvider:
        return RunningProvider(self._base, name, self._series, self.clusterctl, self._installed)


@contextmanager
def start_servers(
    tools: Toolbox,
    series: str,
    installed: Installation,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[ManagementServers]:
    """Return a context manager that runs etcd and the first management cluster until it exits.

    ``progress`` receives messages about the current step.
    """
    etcd = Etcd(tools, folder)
    base = Base(tools, Pki(folder / "pki"), etcd, folder)
    servers = ManagementServers(base, series, installed, folder, progress)
    with ExitStack() as ends:
        ends.callback(etcd.stop)
        etcd.start()
        ends.callback(servers.stop)
        servers.start()
        yield servers


_LOOPBACK = ("127.0.0.1", "localhost")
_STEP_SECONDS = 0.3


class Booting:
    """A context manager that simulates a whole cluster's running machines while it is open."""

    def __init__(self, base: Base, session: ClusterSession, report: Callable[[str], None]) -> None:
        """Define the context manager.

        ``report`` receives the reason if the workload API server does not start.
        """
        self._base = base
        self._session = session
        self._report = report
        self._server: ApiServer | None = None
        self._stopping = threading.Event()
        # The server ends with the thread that started it, so the thread must live as long.
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
            # The next step starts again from the stored state.
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
        """Start the API server if it has an address, a machine and a CA, else return None."""
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
        # A server that does not become ready is stopped, because otherwise the next step would find
        # its port in use.
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
