"""Run a command with a provider in a lab.

A lab that was started for the command is shut down after it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from capsmith.clusters.lab.demo import Progress, ensure_run
from capsmith.clusters.lab.down import end_lab
from capsmith.clusters.lab.errors import LabError, lab_not_running
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.state import LabState, read_lab, restore_toolbox, write_text
from capsmith.clusters.lab.up import UpRequest, start_lab
from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.repository import ClusterctlRepository
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.clusters.processes.tools.catalogue import core_module

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
    its clusters. The command finds the lab through the environment: KUBECONFIG, :data:`CONFIG`, and
    PATH, which begins with the folder of the lab's kubectl and clusterctl. ``progress`` receives
    messages about the current step. Raises LabError if the lab or the provider does not start, or
    if the command does not exist.
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
    _write_commands(lab, state)
    return {
        "KUBECONFIG": state.kubeconfig,
        CONFIG: _config(lab),
        # Otherwise clusterctl would look for its newest release on the network.
        "CLUSTERCTL_DISABLE_VERSIONCHECK": "true",
        "PATH": os.pathsep.join([str(lab.commands), os.environ.get("PATH", os.defpath)]),
    }


def _config(lab: LabFolder) -> str:
    return str(ClusterctlRepository(lab.repository).config)


def _write_commands(lab: LabFolder, state: LabState) -> None:
    """Write scripts that run the lab's kubectl and clusterctl.

    Each has a file of its own, because the folders that contain them have other programs as well.
    """
    lab.commands.mkdir(mode=0o700, exist_ok=True)
    clusterctl = restore_toolbox(state.tools, state.found).path(
        core_module(state.series), "clusterctl"
    )
    # clusterctl reads its configuration from no environment variable.  An option of the user
    # follows, and takes precedence.
    _write_command(lab.commands / "clusterctl", [str(clusterctl), f"--config={_config(lab)}"])
    with suppress(ToolsUnavailable):
        _write_command(lab.commands / "kubectl", [find_kubectl()])


def _write_command(path: Path, command: Sequence[str]) -> None:
    # A command that runs in the lab may itself run a command in the lab, and finds this script.
    if command[0] != str(path):
        write_text(path, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', mode=0o700)
