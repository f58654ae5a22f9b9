"""Connect to a lab's management cluster from a process other than its supervisor."""

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
    """The API server, clusterctl and release repository of a lab."""

    def __init__(self, lab: LabFolder, state: LabState, keys: Path, folder: str) -> None:
        """Connect; the credentials of the kubeconfig are copied into the folder ``keys``."""
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
        """Return a client with all permissions."""
        return self._client

    @property
    def kubeconfig(self) -> Path:
        """Return the path of a kubeconfig with all permissions."""
        return Path(self.state.kubeconfig)

    @property
    def serving(self) -> tuple[Path, Path]:
        """Return the paths of the webhooks' certificate and key."""
        return self.pki.serving.cert, self.pki.serving.key


@contextmanager
def connect(lab: LabFolder, folder: str = "provider") -> Iterator[LabConnection]:
    """Connect to a running lab; files of the connection are in ``folder`` of the lab.

    Raises LabError if the lab is not running.
    """
    state = read_lab(lab.state)
    if state is None or not lab.is_running:
        raise lab_not_running(lab.name)
    keys = lab.root / "keys"
    keys.mkdir(mode=0o700, exist_ok=True)
    connection = LabConnection(lab, state, keys, folder)
    with closing(connection.client):
        yield connection
