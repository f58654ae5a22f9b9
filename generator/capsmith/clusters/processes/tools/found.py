"""Servers of Kubernetes that the user has installed, as kubebuilder's envtest finds them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

ASSETS = "KUBEBUILDER_ASSETS"
"""The variable with the folder of etcd and kube-apiserver."""

_SERVERS = ("etcd", "kube-apiserver")
_CONTROLLERS = "kube-controller-manager"
_VERSION = re.compile(r"v(\d+)\.(\d+)\.")
_LOWEST = (1, 30)  # the first with ValidatingAdmissionPolicies
_SECONDS = 30


def installed_servers(environment: Mapping[str, str], *, is_built: bool) -> dict[str, Path]:
    """Return etcd and kube-apiserver, and kube-controller-manager if it is beside them.

    The folder of `KUBEBUILDER_ASSETS` counts first.  PATH is looked at unless capsmith has already
    built the servers.  A kube-apiserver that is too old is none.
    """
    assets = environment.get(ASSETS)
    if assets:
        found = _servers(assets)
        if found:
            return found
    return {} if is_built else _servers(environment.get("PATH", os.defpath))


def _servers(search: str) -> dict[str, Path]:
    found = {name: shutil.which(name, path=search) for name in (*_SERVERS, _CONTROLLERS)}
    paths = {name: Path(path) for name, path in found.items() if path}
    if not paths.keys() >= set(_SERVERS) or not _is_new_enough(paths["kube-apiserver"]):
        return {}
    return paths


def _is_new_enough(apiserver: Path) -> bool:
    try:
        done = subprocess.run(
            [apiserver, "--version"], capture_output=True, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return False
    found = _VERSION.search(done.stdout)
    return found is not None and (int(found[1]), int(found[2])) >= _LOWEST
