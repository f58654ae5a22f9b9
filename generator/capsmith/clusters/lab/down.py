"""Shut down a lab and remove its files, unless real clusters would be left behind."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory

from capsmith.clusters.lab.folder import LabFolder, find_holders, is_held, read_pid
from capsmith.clusters.lab.real_cluster import delete_kind_cluster
from capsmith.clusters.lab.state import read_lab, read_run
from capsmith.clusters.node.host import remove_cgroups
from capsmith.clusters.node.plan import name_cgroup
from capsmith.clusters.processes.kube import ApiError, KubeClient
from capsmith.clusters.processes.user_kubeconfig import open_client
from capsmith.errors import CapsmithError, Refused

_GROUP = "cluster.x-k8s.io"


def check_no_clusters(lab: LabFolder) -> None:
    """Raise Refused if the lab has clusters whose machines are not simulated.

    Without the lab, nothing would delete these machines.  A lab that does not respond is not
    checked.
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
    """Return whether the simulated cloud has contents, so that nothing is outside the lab."""
    return any(lab.cloud.glob("*/*.json"))


_END_SECONDS = 20.0
_KILL_SECONDS = 10.0
_STEP_SECONDS = 0.1


def end_lab(lab: LabFolder) -> None:
    """Shut down a lab and remove its files, even after a crash.

    Raises Refused if the lab's processes cannot be stopped.
    """
    run, state = read_run(lab.run_state), read_lab(lab.state)
    _end(lab.page_lock, None)
    _end(lab.run_lock, run.pid if run else 0)
    _end(lab.lock, state.pid if state else read_pid(lab))
    delete_kind_cluster(lab)
    # The keeper of a node removes the cgroups, unless it was killed.
    remove_cgroups(name_cgroup(lab.root))
    lab.remove()


def _end(lock: Path, pid: object) -> None:
    """End the process that holds a lock, by SIGTERM and then by SIGKILL.

    ``pid`` is the number recorded in a file.  The file may be damaged or outdated, and the number
    may belong to another process, so a process that does not have the lock open is not ended.
    """
    for number, seconds in ((signal.SIGTERM, _END_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        if not is_held(lock):
            return
        for holder in _find_holders(lock, pid):
            with suppress(ProcessLookupError):
                os.kill(holder, number)
        deadline = time.monotonic() + seconds
        while is_held(lock) and time.monotonic() < deadline:
            time.sleep(_STEP_SECONDS)
    if is_held(lock):
        raise Refused(
            "lab-not-ended",
            "a process of the lab is still running",
            file=str(lock),
            hint="Find the process that has this file open, end it, and run the command again.",
        )


def _find_holders(lock: Path, pid: object) -> list[int]:
    holders = find_holders(lock)
    if holders is not None:
        # The supervisor comes first, because it ends its children.
        return [pid] if isinstance(pid, int) and pid in holders else holders
    # 0 and negative numbers would mean process groups, and 1 is the system's init process.
    return [pid] if isinstance(pid, int) and pid > 1 else []
