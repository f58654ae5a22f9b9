"""`python -m capsmith.clusters.node.keeper`: the one process of a node that stays on the host.

It starts the namespaces, makes the API server reachable on the host, and removes the cgroups for
the node's Pods once the namespaces are gone. If the command that waits for the lab has exited, it
removes the lab's folder as well.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from capsmith.clusters.node.errors import HostUnsuitable, report_error
from capsmith.clusters.node.host import create_cgroups, find_tool, remove_cgroups
from capsmith.clusters.node.plan import NodePaths, name_cgroup
from capsmith.clusters.node.signals import SigtermForwarder, hold_sigterm
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.folders import remove_folder
from capsmith.clusters.processes.process import Process, bind_to_parent
from capsmith.clusters.processes.wait import eventually

_NAMESPACES = ("--net", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc")

ABANDONED: Final = 3
"""Exit code of a node's command if `lab up` has exited, so that the lab's folder must be removed.

The command cannot remove the folder itself, because it contains mount points in its namespaces.
"""


@dataclass(frozen=True)
class KeeperSettings:
    """Settings of the keeper: the one process of a lab's node that stays on the host.

    The keeper receives them as JSON on its command line.
    """

    lab: str
    """Path to the lab's folder."""
    node: str
    """Path to the folder that contains the node's files."""
    pid: str
    """Path to the file to which the keeper writes its process id."""
    port: int
    """The API server's port, on the host and in the namespaces."""


def build_keeper_command(settings: KeeperSettings, command: list[str]) -> list[str]:
    """Return the command that runs ``command`` in a node's namespaces."""
    module = "capsmith.clusters.node.keeper"
    return [sys.executable, "-m", module, json.dumps(asdict(settings)), *command]


def main() -> int:
    """Run a node until its first process exits, and return the exit code."""
    sigterm = SigtermForwarder()
    sigterm.install()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    settings = KeeperSettings(**json.loads(sys.argv[1]))
    paths, cgroup = NodePaths(Path(settings.node)), name_cgroup(Path(settings.lab))
    paths.root.mkdir(parents=True, exist_ok=True)
    Path(settings.pid).write_text(str(os.getpid()), encoding="utf-8")
    # The cgroups of a killed node are empty, because its processes died with it.
    remove_cgroups(cgroup)
    try:
        create_cgroups(cgroup)
        code = _run(settings, paths, sys.argv[2:], sigterm)
    except HostUnsuitable as error:
        report_error(error)
        return 1
    finally:
        remove_cgroups(cgroup)
    if code == ABANDONED:
        remove_folder(Path(settings.lab), parents=2)
    return code


def _run(
    settings: KeeperSettings, paths: NodePaths, command: list[str], sigterm: SigtermForwarder
) -> int:
    inside = [sys.executable, "-m", "capsmith.clusters.node.inside", settings.node, settings.lab]
    unshare = [find_tool("unshare") or "unshare", *_NAMESPACES, "--"]
    whole = bind_to_parent([*unshare, *inside, *command])
    with hold_sigterm():
        child = subprocess.Popen(whole, start_new_session=True)
    relay: Process | None = None
    try:
        init = _find_init(child)
        if init:
            paths.init_pid.write_text(str(init), encoding="utf-8")
            sigterm.forward_to(lambda: _end(init))
            relay = _relay(paths, init, settings.port)
        return child.wait()
    finally:
        child.kill()
        if relay is not None:
            relay.kill()


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def _find_init(child: subprocess.Popen[bytes]) -> int:
    """Return the id of the first process in the namespaces, or 0 if `unshare` has failed."""
    children = Path(f"/proc/{child.pid}/task/{child.pid}/children")

    def found() -> list[str]:
        if child.poll() is not None:
            return ["0"]
        with suppress(OSError):
            return children.read_text(encoding="utf-8").split()
        return []

    return int(eventually(found, what="the namespaces of the node", interval=0.02)[0])


def _relay(paths: NodePaths, init: int, port: int) -> Process:
    command = [sys.executable, "-m", "capsmith.clusters.node.relay", str(init), str(port)]
    process = Process("relay", command, paths.root / "relay.log")
    with suppress(ProcessError):
        process.start()
    return process


if __name__ == "__main__":
    sys.exit(main())
