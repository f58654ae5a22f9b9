"""Run a lab in a real cluster, which already exists or is created with docker and kind.

In this case, only the provider's manager is a local process.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import closing
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.state import LabState, write_state
from capsmith.clusters.processes.kube import ApiError, KubeClient, NoApiServerError
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.tools import Toolbox, core_releases
from capsmith.clusters.processes.tools.catalogue import core_module
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.regular_files import read_regular

_INVENTORY = "clusterctl.cluster.x-k8s.io/v1alpha3"
_CORE = "cluster-api"


class ExistingCluster:
    """The user's own cluster, used to host a provider; no processes are started for it."""

    def __init__(self, lab: LabFolder, series: str, tools: Toolbox, pid: int) -> None:
        """Use the cluster that the kubeconfig in the lab's folder refers to.

        ``series`` is clusterctl's release series, ``pid`` the supervisor's process id.
        """
        self._lab = lab
        self._series = series
        self._tools = tools
        self._pid = pid

    @property
    def step_count(self) -> int:
        """Return the number of progress messages that a start reports."""
        return 1

    def start(self, progress: Callable[[str], None]) -> None:
        """Prepare the release repository, and record the lab's state.

        ``progress`` receives messages about the current step.  Raises CapsmithError if core is not
        installed in the cluster.
        """
        progress("looking for Cluster API in the cluster")
        keys = self._lab.root / "keys"
        keys.mkdir(mode=0o700, exist_ok=True)
        pki = Pki(self._lab.pki)
        with closing(open_client(self._lab.kubeconfig, keys)) as client:
            core = _core_version(client)
            kubernetes = str(client.request("GET", "/version")["gitVersion"])
        repository = ClusterctlRepository(self._lab.repository)
        is_here = core_module(self._series) in self._tools.folders
        if is_here and core == core_releases()[self._series]:
            # clusterctl reads the metadata of installed providers; with local copies it downloads
            # nothing.
            repository.add_core(self._tools, self._series, pki)
        write_state(
            self._lab.state,
            LabState(
                pid=self._pid,
                core=core,
                series=self._series,
                kubernetes=kubernetes,
                kubeconfig=str(self._lab.kubeconfig),
                simulated=False,
                tools={name: str(folder) for name, folder in self._tools.folders.items()},
                found={name: str(path) for name, path in self._tools.found.items()},
            ),
        )

    def look(self, now: float, note: Callable[[str], None]) -> None:
        """Do nothing, because the lab runs no servers."""

    def stop(self) -> None:
        """Do nothing, because the cluster outlives the lab."""


def _core_version(client: KubeClient) -> str:
    """Return the version of core that clusterctl installed."""
    try:
        client.require_api_server()
        found = client.list(_INVENTORY, "Provider")
    except NoApiServerError as error:
        hint = "Specify the kubeconfig of a management cluster."
        raise LabError("lab-cluster", str(error), hint=hint) from error
    except (ApiError, LookupError):
        found = []
    except (OSError, HTTPException) as error:
        hint = "Check that it is running, and that the kubeconfig belongs to it."
        message = f"the cluster does not respond: {error}"
        raise LabError("lab-cluster", message, hint=hint) from error
    for each in found:
        if each["metadata"]["name"] == _CORE:
            return str(each["version"])
    hint = "Run clusterctl init --bootstrap kubeadm --control-plane kubeadm there first."
    raise LabError("lab-no-core", "Cluster API is not installed in the cluster", hint=hint)


def copy_kubeconfig(kubeconfig: Path, target: Path) -> None:
    """Copy a kubeconfig to a file that only its owner can read.

    Raises LabError if ``kubeconfig`` cannot be read.
    """
    try:
        text = read_regular(kubeconfig)
    except OSError as error:
        hint = "Specify the kubeconfig of a management cluster."
        message = f"cannot be read: {error.strerror}"
        raise LabError("lab-cluster", message, file=str(kubeconfig), hint=hint) from error
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)


_SECONDS = 900


def create_kind_cluster(
    lab: LabFolder, series: str, tools: Toolbox, progress: Callable[[str], None]
) -> None:
    """Create a kind cluster with core and the kubeadm providers, and write its kubeconfig.

    ``progress`` receives messages about the current step.
    """
    lab.kind.write_text(_name(lab))
    progress(f"creating the cluster {_name(lab)} with kind")
    kubeconfig = ["--kubeconfig", str(lab.kubeconfig)]
    _run(["kind", "create", "cluster", "--name", _name(lab), "--wait", "180s", *kubeconfig], {})
    progress("installing Cluster API with clusterctl init")
    release = core_releases()[series]
    clusterctl = str(tools.path(core_module(series), "clusterctl"))
    providers = [
        f"--core=cluster-api:{release}",
        f"--bootstrap=kubeadm:{release}",
        f"--control-plane=kubeadm:{release}",
    ]
    home = {"XDG_CONFIG_HOME": str(lab.root), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    _run([clusterctl, "init", *providers, "--wait-providers", *kubeconfig], home)


def delete_kind_cluster(lab: LabFolder) -> None:
    """Delete a lab's kind cluster, if it has one.

    Raises LabError if kind fails.
    """
    if lab.kind.exists():
        _run(["kind", "delete", "cluster", "--name", _name(lab)], {})
        lab.kind.unlink()


def _name(lab: LabFolder) -> str:
    return f"capsmith-{lab.name}"


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        output = done.stderr or done.stdout
        code = done.returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        output, code = str(error), 1
    if code != 0:
        message = f"{Path(command[0]).name} {command[1]} failed:\n{keep_tail(output)}"
        hint = "Correct what it reports, and run the command again."
        raise LabError("lab-kind", message, hint=hint)
