"""Run commands in a node's namespaces, from the host."""

from __future__ import annotations

import subprocess
from pathlib import Path

from capsmith.clusters.node.errors import NodeError
from capsmith.clusters.node.host import find_tool
from capsmith.clusters.node.plan import SOCKET, NodePaths

_SECONDS = 300


def build_enter_command(paths: NodePaths) -> list[str]:
    """Return the start of a command line that runs a command in a node's namespaces.

    Raises NodeError if the node is not running.
    """
    try:
        pid = paths.init_pid.read_text(encoding="utf-8")
    except OSError as error:
        message = f"the node is not running: {error}"
        raise NodeError(message, "Run capsmith lab status.") from error
    return [find_tool("nsenter") or "nsenter", "-t", pid, "-m", "-n", "-p", "--"]


def import_images(ctr: Path, archive: Path, prefix: list[str]) -> None:
    """Import the images in an archive into containerd.

    ``prefix`` is the result of :func:`build_enter_command`, or empty inside the node's namespaces.
    Raises NodeError if the import fails.
    """
    command = [str(ctr), f"--address={SOCKET}", "--namespace=k8s.io", "images", "import"]
    run(prefix, [*command, "--local", "--snapshotter=overlayfs", str(archive)])


def run(prefix: list[str], command: list[str]) -> str:
    """Run a command and return its standard output.

    The arguments in ``prefix`` are put before the command.  Raises NodeError if the command fails.
    """
    hint = "Correct what it reports; capsmith lab logs shows what the node's processes report."
    try:
        done = subprocess.run(
            [*prefix, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NodeError(f"{' '.join(command)}: {error}", hint) from error
    if done.returncode != 0:
        raise NodeError(f"{' '.join(command)} failed:\n{done.stderr or done.stdout}", hint)
    return done.stdout
