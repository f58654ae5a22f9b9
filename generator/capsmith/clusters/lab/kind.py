"""Create a kind cluster for a lab, if docker and kind are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from capsmith.clusters.lab.errors import LabError, keep_tail
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.processes.tools import Toolbox, core_releases

_NEEDED = ("docker", "kind")
_SECONDS = 900


def require_kind() -> None:
    """Raise LabError if docker or kind is missing."""
    missing = [name for name in _NEEDED if shutil.which(name) is None]
    if missing:
        hint = "Install them, or run capsmith lab up without --kind: it needs no containers."
        raise LabError("lab-kind", f"not found on PATH: {', '.join(missing)}", hint=hint)


def create(lab: LabFolder, series: str, tools: Toolbox, progress: Callable[[str], None]) -> None:
    """Create a kind cluster with core and the kubeadm providers, and write its kubeconfig.

    ``progress`` receives messages about the current step.
    """
    lab.kind.write_text(_name(lab))
    progress(f"creating the cluster {_name(lab)} with kind")
    kubeconfig = ["--kubeconfig", str(lab.kubeconfig)]
    _run(["kind", "create", "cluster", "--name", _name(lab), "--wait", "180s", *kubeconfig], {})
    progress("installing Cluster API with clusterctl init")
    release = core_releases()[series]
    clusterctl = str(tools.path(f"capi-{series}", "clusterctl"))
    providers = [
        f"--core=cluster-api:{release}",
        f"--bootstrap=kubeadm:{release}",
        f"--control-plane=kubeadm:{release}",
    ]
    home = {"XDG_CONFIG_HOME": str(lab.root), "CLUSTERCTL_DISABLE_VERSIONCHECK": "true"}
    _run([clusterctl, "init", *providers, "--wait-providers", *kubeconfig], home)


def delete(lab: LabFolder) -> None:
    """Delete the kind cluster of a lab, if it has one.

    Raises LabError if kind fails.
    """
    if lab.kind.exists():
        _run(["kind", "delete", "cluster", "--name", _name(lab)], {})
        lab.kind.unlink()


def _name(lab: LabFolder) -> str:
    return f"capsmith-{lab.name}"


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
        output = done.stderr or done.stdout
        code = done.returncode
    except (OSError, subprocess.TimeoutExpired) as error:
        output, code = str(error), 1
    if code != 0:
        message = f"{Path(command[0]).name} {command[1]} failed:\n{keep_tail(output)}"
        hint = "Correct what it reports, and run the command again."
        raise LabError("lab-kind", message, hint=hint)
