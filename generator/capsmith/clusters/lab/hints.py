"""Suggest commands to try once a cluster is running."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from capsmith.clusters.lab.objects import Cluster
from capsmith.clusters.lab.state import LabState, RunState
from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.tools.build import find_kubectl


def format_hints(lab: str, state: LabState, run: RunState, found: Cluster) -> list[str]:
    """Return lines with commands for the user to try after a demo."""
    tool, command, name = _kubectl(), _capsmith(), _name(found.cluster)
    kinds = ["cluster", "machine", *_kinds(found)]
    steps = [
        ("look", f"{tool} get {','.join(kinds)}"),
        *(("scale", _scale(tool, _name(each))) for each in found.deployments[:1]),
        ("kill the manager", f"{_kill(run)}  # it restarts: {command} lab status --name {lab}"),
        ("change the code", f"edit a file below {run.folder}/src: the manager restarts"),
        ("delete", f"{tool} delete cluster {name}"),
        ("read logs", f"{command} lab logs manager --follow --name {lab}"),
        ("end", f"{command} lab down --name {lab}"),
    ]
    width = max(len(title) for title, _ in steps)
    simulated = "Nodes are simulated: no machine has booted. " if state.simulated else ""
    return [
        f"{simulated}Try:",
        f"  export KUBECONFIG={shlex.quote(state.kubeconfig)}",
        *(f"  {title.ljust(width)}  {command}" for title, command in steps),
    ]


def _kinds(found: Cluster) -> list[str]:
    """Return the kinds of the objects that providers create for Machines."""
    objects = [obj for each in found.machines for obj in (each.bootstrap, each.infrastructure)]
    return sorted({str(obj["kind"]).lower() for obj in objects if obj})


def _scale(tool: str, deployment: str) -> str:
    return f"{tool} scale machinedeployment {deployment} --replicas 4"


def _kill(run: RunState) -> str:
    return "kill -9 " + " ".join(
        str(each.pid) for each in run.components if each.name.startswith("manager-")
    )


def _capsmith() -> str:
    """Return the command that runs this capsmith: its name if it is on PATH, or else its path."""
    if shutil.which("capsmith"):
        return "capsmith"
    beside = Path(sys.executable).with_name("capsmith")
    return shlex.quote(str(beside)) if beside.exists() else "capsmith"


def _kubectl() -> str:
    if shutil.which("kubectl"):
        return "kubectl"
    try:
        return shlex.quote(find_kubectl())
    except ToolsUnavailable:
        return "kubectl"


def _name(obj: object) -> str:
    return str(obj["metadata"]["name"]) if isinstance(obj, dict) else ""
