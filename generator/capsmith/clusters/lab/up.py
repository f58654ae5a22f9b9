"""Start a lab in the background."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from capsmith.clusters.lab.errors import (
    LabError,
    convert_os_error,
    disk_full,
    keep_tail,
    lab_already_running,
)
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.real_cluster import (
    copy_kubeconfig,
    create_kind_cluster,
    delete_kind_cluster,
)
from capsmith.clusters.lab.requirements import LabNeeds, require_lab
from capsmith.clusters.lab.servers import module_names
from capsmith.clusters.lab.state import LabState, read_lab
from capsmith.clusters.node.host import remove_cgroups
from capsmith.clusters.node.keeper import KeeperSettings, build_keeper_command
from capsmith.clusters.node.plan import name_cgroup
from capsmith.clusters.node.tools import NodeTools, build_node_tools
from capsmith.clusters.processes.process import free_port
from capsmith.clusters.processes.tools import Toolbox, core_releases, toolbox
from capsmith.clusters.processes.tools.catalogue import core_module
from capsmith.clusters.processes.tools.installed import find_installed_clusterctl

Progress = Callable[[str], None]

_NEEDED_BYTES = 500 * 1024 * 1024
_NODE_BYTES = 4 * 1024 * 1024 * 1024
_END_SECONDS = 20.0


@dataclass(frozen=True)
class UpRequest:
    """The options of `capsmith lab up`."""

    core: str
    """Core's release series, such as ``v1.14``."""
    kubeconfig: Path | None = None
    """Path to an existing cluster's kubeconfig; None if the lab starts its own cluster."""
    kind: bool = False
    """Whether to create a cluster with kind."""
    gates: str = ""
    """Feature gates for core and the kubeadm providers, such as ``Name=true,Other=false``."""
    node: bool = False
    """Whether to start a node, and run core and the providers as Pods."""
    image: bool = False
    """Whether the command will also build a provider's image."""

    @property
    def uses_real_cluster(self) -> bool:
        """Return whether the lab uses a real cluster instead of starting its own API server."""
        return self.kind or self.kubeconfig is not None


def start_lab(lab: LabFolder, request: UpRequest, progress: Progress) -> LabState:
    """Start a lab, and return its state once a provider can be installed.

    ``progress`` receives messages about the current step.  If the start fails or is interrupted,
    nothing is left behind.  Raises CapsmithError if the start fails.
    """
    known = core_releases()
    if request.core not in known:
        hint = f"Choose one of {', '.join(known)}."
        raise LabError("lab-core", f"unknown release of core {request.core}", hint=hint)
    if lab.is_running:
        raise lab_already_running(lab.name)
    clusterctl = find_installed_clusterctl(request.core) if request.uses_real_cluster else None
    require_lab(
        LabNeeds(go=clusterctl is None, node=request.node, image=request.image, kind=request.kind)
    )
    # Done before the folder exists: a build takes minutes, and an interrupted build must not leave
    # a lab.
    tools = _find_tools(request, clusterctl, progress)
    node_tools = build_node_tools(progress) if request.node else None
    lock = lab.create()
    try:
        _check_room(lab.root, _NODE_BYTES if request.node else _NEEDED_BYTES)
        if request.kubeconfig is not None:
            copy_kubeconfig(request.kubeconfig, lab.kubeconfig)
        if request.kind:
            create_kind_cluster(lab, request.core, tools, progress)
        _start(lab, _build_command(lab, request, tools, node_tools), lock, progress)
        state = read_lab(lab.state)
        if state is None:
            hint = "Run capsmith lab up again."
            raise LabError("lab-failed", "the lab ended immediately", hint=hint)
        return state
    except OSError as error:
        _undo(lab)
        raise convert_os_error(error, lab.root) from error
    except BaseException:
        _undo(lab)
        raise
    finally:
        os.close(lock)


def _find_tools(request: UpRequest, clusterctl: Path | None, progress: Progress) -> Toolbox:
    """Return a lab's tools, building those that are missing.

    A cluster that is given needs none but a clusterctl that the user may have installed.
    """
    if clusterctl is not None:
        progress(f"using {clusterctl}")
        return Toolbox({}, {"clusterctl": clusterctl})
    needed = (
        [core_module(request.core)] if request.uses_real_cluster else module_names(request.core)
    )
    return toolbox(needed, progress, find=True)


def _undo(lab: LabFolder) -> None:
    """Stop and remove everything that a failed start created."""
    with suppress(LabError):
        delete_kind_cluster(lab)
    # The keeper of a node removes the cgroups, unless it was killed.
    remove_cgroups(name_cgroup(lab.root))
    lab.remove()


def _build_command(
    lab: LabFolder, request: UpRequest, tools: Toolbox, node_tools: NodeTools | None
) -> list[str]:
    """Return the command of the supervisor, in the namespaces of a node if there is one."""
    port = free_port() if request.node else 0
    # A node hides folders of the host, possibly including a symbolic link to the lab's folder.
    root = lab.root.resolve() if request.node else lab.root
    settings = {
        "root": str(root),
        "core": request.core,
        "given": request.uses_real_cluster,
        "gates": request.gates,
        "tools": {name: str(folder) for name, folder in tools.folders.items()},
        "found": {name: str(path) for name, path in tools.found.items()},
        "node": node_tools.to_data() if node_tools else {},
        "port": port,
        "kubernetes": tools.kubernetes,
    }
    command = [sys.executable, "-m", "capsmith.clusters.lab.supervisor", json.dumps(settings)]
    if not request.node:
        return command
    resolved = LabFolder(root)
    keeper = KeeperSettings(str(root), str(resolved.node), str(resolved.pid), port)
    return build_keeper_command(keeper, command)


def _start(lab: LabFolder, command: list[str], lock: int, progress: Progress) -> None:
    with lab.log.open("ab") as log:
        child = subprocess.Popen(
            command,
            cwd=lab.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            # The supervisor inherits the descriptor and thus the lock, so the lock is held at every
            # moment.
            pass_fds=(lock,),
        )
    try:
        lab.pid.write_text(str(child.pid))
        _follow(child, lab, progress)
    except BaseException:
        _stop(child)
        raise
    finally:
        if child.stdout is not None:
            child.stdout.close()


def _follow(child: subprocess.Popen[bytes], lab: LabFolder, progress: Progress) -> None:
    """Forward the supervisor's messages to ``progress`` until the lab is ready.

    Raises the supervisor's error if the lab does not start.
    """
    # The pipe closes when the supervisor ends, so this cannot wait for a dead process.
    for line in child.stdout or ():
        message = json.loads(line)
        if "step" in message:
            progress(message["step"])
        elif "error" in message:
            id, text, hint, file = message["error"]
            raise LabError(id, text, file=file, hint=hint)
        else:
            return
    log = keep_tail(lab.log.read_text(errors="replace"), 20)
    hint = "Run capsmith lab up again."
    raise LabError("lab-failed", f"the supervisor of the lab has ended:\n{log}", hint=hint)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End a supervisor that is starting; a second Ctrl-C kills it and thereby its children."""
    child.terminate()
    while child.poll() is None:
        try:
            child.wait(_END_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            child.kill()


def _check_room(folder: Path, needed: int) -> None:
    if shutil.disk_usage(folder).free < needed:
        raise disk_full(folder)
