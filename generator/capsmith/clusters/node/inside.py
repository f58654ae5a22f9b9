"""`python -m capsmith.clusters.node.inside`: the first process in a node's namespaces.

It creates the network and the mounts, runs the command that owns the lab, and exits with it; the
kernel then kills all other processes in the namespaces.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from capsmith.clusters.node.errors import NodeError, report_error
from capsmith.clusters.node.plan import SYSCTLS, NodePaths, list_folders, plan_mounts, plan_network
from capsmith.clusters.node.signals import SigtermForwarder


def main() -> int:
    """Prepare the namespaces, run the command given as arguments, and return its exit code."""
    sigterm = SigtermForwarder()
    sigterm.install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    root, lab, command = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    try:
        _prepare(NodePaths(root), lab)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        message = f"the namespaces of the node cannot be prepared: {error}: {reason}".strip()
        hint = "Correct what it reports, and run the command again."
        report_error(NodeError(message, hint))
        return 1
    return 0 if sigterm.is_requested else _run(command, sigterm)


def _prepare(paths: NodePaths, lab: Path) -> None:
    for folder in list_folders(paths):
        folder.mkdir(parents=True, exist_ok=True)
    found = [key for key in SYSCTLS if Path("/proc/sys", key).exists()]
    for key in found:
        (paths.sysctls / key.replace("/", "_")).write_text(f"{SYSCTLS[key]}\n", encoding="utf-8")
    for command in [*plan_network(), *plan_mounts(paths, lab, found)]:
        subprocess.run(command, check=True, capture_output=True, text=True)
    Path("/run/lock").mkdir(exist_ok=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n", encoding="utf-8")


def _run(command: list[str], sigterm: SigtermForwarder) -> int:
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    sigterm.forward_to(child.terminate)
    while True:
        # Orphaned processes become children of the first process, which must reap them.
        pid, status = os.wait()
        if pid == child.pid:
            return os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
