"""Clusters that would outlive a lab: those whose machines are not simulated."""

from __future__ import annotations

from contextlib import closing
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from capsmith.clusters.lab.place import LabFolder
from capsmith.clusters.lab.state import read_lab
from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.errors import CapsmithError, Refused

_GROUP = "cluster.x-k8s.io"


def check_no_clusters(lab: LabFolder) -> None:
    """Raise Refused if there are clusters that the simulated cloud does not know.

    Their machines would be left.  A lab that does not respond is not asked.
    """
    state = read_lab(lab.state)
    if state is None or not lab.is_running or _is_simulated(lab):
        return
    try:
        with (
            TemporaryDirectory(prefix="capsmith-") as keys,
            closing(open_client(Path(state.kubeconfig), Path(keys))) as client,
        ):
            names = _clusters(client)
    except (CapsmithError, ApiError, OSError, HTTPException, LookupError):
        return
    if names:
        raise Refused(
            "lab-clusters",
            f"clusters still exist: {', '.join(names)}; their machines would be left behind",
            hint="Delete them with kubectl delete cluster, or end the lab with --force.",
        )


def _clusters(client: KubeClient) -> list[str]:
    core = client.preferred_version(_GROUP)
    found = [each["metadata"] for each in client.list(core, "Cluster")]
    return [f"{each['namespace']}/{each['name']}" for each in found]


def _is_simulated(lab: LabFolder) -> bool:
    """Return whether the simulated cloud has something: then nothing is outside of the lab."""
    return any(lab.cloud.glob("*/*.json"))
