"""`python -m capsmith.clusters.lab.simulated FOLDER` runs a lab's simulated machines."""

from __future__ import annotations

import signal
import sys
import threading
import traceback
from http.client import HTTPException
from pathlib import Path

from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.simulated.loop import note
from capsmith.clusters.lab.simulated.workload import RunningEtcd, SimulatedClusters
from capsmith.clusters.lab.state import read_lab, restore_toolbox
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.kube import ApiError
from capsmith.clusters.processes.pki import EtcdTLS, Pki
from capsmith.clusters.processes.servers import ETCD_TLS
from capsmith.clusters.processes.user_kubeconfig import open_client

_TICK_SECONDS = 0.2


def main() -> int:
    """Run the simulation until a signal arrives. Steps that fail are retried."""
    lab = LabFolder(Path(sys.argv[1]))
    state = read_lab(lab.state)
    if state is None:
        sys.exit("the lab is not running")
    ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ending.set())
    keys = lab.root / "machines"
    keys.mkdir(mode=0o700, exist_ok=True)
    clusters = SimulatedClusters(
        restore_toolbox(state.tools, state.found),
        Pki.existing(lab.pki),
        RunningEtcd(state.etcd, EtcdTLS.existing(lab.root / ETCD_TLS)),
        open_client(Path(state.kubeconfig), keys),
        lab.root,
        state.address,
    )
    try:
        clusters.start()
        while not ending.wait(_TICK_SECONDS):
            _tick(clusters, lab)
    finally:
        clusters.stop()
    return 0


def _tick(clusters: SimulatedClusters, lab: LabFolder) -> None:
    try:
        clusters.tick()
    except (ApiError, ProcessError, OSError, HTTPException, LookupError) as error:
        note(lab.root / "machines.log", str(error))
    except Exception:
        # An error in the simulation; the step is retried from the stored state.
        note(lab.root / "machines.log", traceback.format_exc())


if __name__ == "__main__":
    sys.exit(main())
