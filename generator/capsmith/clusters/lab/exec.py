"""Run a command with a provider in a lab.

A lab that was started for the command is shut down after it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack

from capsmith.clusters.lab.demo import Progress, ensure_run
from capsmith.clusters.lab.down import end_lab
from capsmith.clusters.lab.errors import LabError, lab_not_running
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.state import read_lab
from capsmith.clusters.lab.up import UpRequest, start_lab
from capsmith.clusters.processes.repository import ClusterctlRepository

CONFIG = "CLUSTERCTL_CONFIG"
"""Environment variable for the path to the lab's clusterctl configuration."""


def execute(
    provider: ProviderRepository,
    lab: LabFolder,
    request: UpRequest,
    command: Sequence[str],
    progress: Progress,
) -> int:
    """Run ``command`` while the provider's managers run in a lab; return the command's exit code.

    A lab that is already running is used, regardless of ``request``, and keeps running. Otherwise,
    a lab is started according to ``request``; it is shut down after the command, together with all
    its clusters. The command finds the lab through the environment: KUBECONFIG, and :data:`CONFIG`
    for clusterctl. ``progress`` receives messages about the current step. Raises LabError if the
    lab or the provider does not start, or if the command does not exist.
    """
    provider.check_manager()
    with ExitStack() as ends:
        if not lab.is_running:
            # If this start fails, it has cleaned up, or another command has started the lab.
            start_lab(lab, request, progress)
            ends.callback(_end, lab, progress)
        ensure_run(provider, lab, progress)
        try:
            return subprocess.run(command, env={**os.environ, **_environment(lab)}).returncode
        except OSError as error:
            message = f"{command[0]} cannot be run: {error.strerror}"
            raise LabError(
                "lab-command", message, hint="Specify a program that is on PATH."
            ) from error


def _end(lab: LabFolder, progress: Progress) -> None:
    progress(f"ending the lab {lab.name}")
    end_lab(lab)


def _environment(lab: LabFolder) -> dict[str, str]:
    state = read_lab(lab.state)
    if state is None:
        raise lab_not_running(lab.name)
    return {
        "KUBECONFIG": state.kubeconfig,
        CONFIG: str(ClusterctlRepository(lab.repository).config),
        # Otherwise clusterctl would look for its newest release on the network.
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
    }
