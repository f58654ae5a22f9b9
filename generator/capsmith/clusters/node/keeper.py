"""`python -m capsmith.clusters.node.keeper`: the process of a node that stays on the host.

It starts the namespaces, makes the API server reachable on the host, and removes the cgroups of the
node's Pods when the namespaces have ended.
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
from types import FrameType

from capsmith.clusters.node.host import create_cgroups, find_tool, remove_cgroups
from capsmith.clusters.node.plan import NodePaths, name_cgroup
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import Process, bind_to_parent
from capsmith.clusters.processes.wait import eventually

_NAMESPACES = ("--net", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True)
class KeeperSettings:
    """What a keeper needs to know."""

    lab: str
    """Path to the lab's folder."""
    node: str
    """Path to the folder of the node's files."""
    pid: str
    """Path to the file into which the keeper writes its process id."""
    port: int
    """Port of the API server, on the host and in the namespaces."""


def build_keeper_command(settings: KeeperSettings, command: list[str]) -> list[str]:
    """Return the command that runs ``command`` in the namespaces of a node."""
    module = "capsmith.clusters.node.keeper"
    return [sys.executable, "-m", module, json.dumps(asdict(settings)), *command]


def main() -> int:
    """Run a node until its first process ends, and return the exit code."""
    settings = KeeperSettings(**json.loads(sys.argv[1]))
    paths, cgroup = NodePaths(Path(settings.node)), name_cgroup(Path(settings.lab).name)
    paths.root.mkdir(parents=True, exist_ok=True)
    Path(settings.pid).write_text(str(os.getpid()), encoding="utf-8")
    # What a node that was killed has left is empty, because its processes died with it.
    remove_cgroups(cgroup)
    create_cgroups(cgroup)
    try:
        return _run(settings, paths, sys.argv[2:])
    finally:
        remove_cgroups(cgroup)


def _run(settings: KeeperSettings, paths: NodePaths, command: list[str]) -> int:
    inside = [sys.executable, "-m", "capsmith.clusters.node.inside", settings.node, settings.lab]
    unshare = [find_tool("unshare") or "unshare", *_NAMESPACES, "--"]
    child = subprocess.Popen(bind_to_parent([*unshare, *inside, *command]), start_new_session=True)
    relay: Process | None = None

    def forward(number: int, frame: FrameType | None) -> None:
        with suppress(OSError, ValueError):
            os.kill(int(paths.init_pid.read_text(encoding="utf-8")), signal.SIGTERM)

    signal.signal(signal.SIGTERM, forward)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        init = _find_init(child)
        if init:
            paths.init_pid.write_text(str(init), encoding="utf-8")
            relay = _relay(paths, init, settings.port)
        return child.wait()
    finally:
        child.kill()
        if relay is not None:
            relay.kill()


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
