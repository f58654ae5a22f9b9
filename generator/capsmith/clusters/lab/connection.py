"""Connect to a lab's management cluster from any process, not only from its supervisor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from capsmith.clusters.lab.errors import lab_not_running
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.state import LabState, read_lab, restore_toolbox
from capsmith.clusters.processes.clusterctl import Clusterctl
from capsmith.clusters.processes.connection import Connection
from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.user_kubeconfig import open_client


class LabConnection(Connection):
    """A connection to a lab's API server, with the lab's clusterctl and release repository."""

    def __init__(self, lab: LabFolder, state: LabState, keys: Path, folder: str) -> None:
        """Read the lab's credentials and connect.

        The certificates in the lab's kubeconfig are written to the folder ``keys``.  ``folder`` is
        the subfolder of the lab in which to store the provider's files.
        """
        self.lab = lab
        self.state = state
        self.name = lab.name
        self.folder = lab.root / folder
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self.pki = Pki.existing(lab.pki)
        self.repository = ClusterctlRepository(lab.repository)
        tools = restore_toolbox(state.tools, state.found)
        self.clusterctl = Clusterctl(tools, state.series, self.repository.config, self.folder)
        self._client = open_client(self.kubeconfig, keys)

    @property
    def client(self) -> KubeClient:
        """Return a client that has all permissions."""
        return self._client

    @property
    def kubeconfig(self) -> Path:
        """Return the path to a kubeconfig that grants all permissions."""
        return Path(self.state.kubeconfig)

    @property
    def serving(self) -> tuple[Path, Path]:
        """Return the paths to the certificate and key that managers use for serving webhooks."""
        return self.pki.serving.cert, self.pki.serving.key


@contextmanager
def connect(lab: LabFolder, folder: str = "provider") -> Iterator[LabConnection]:
    """Return a context manager that provides a connection to a running lab.

    ``folder`` is the lab's subfolder in which to store the connection's files.  Raises LabError if
    the lab is not running.
    """
    state = read_lab(lab.state)
    if state is None or not lab.is_running:
        raise lab_not_running(lab.name)
    keys = lab.root / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    connection = LabConnection(lab, state, keys, folder)
    with closing(connection.client):
        yield connection
