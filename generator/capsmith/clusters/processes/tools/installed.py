"""Find the user's own Kubernetes servers and clusterctl, so that they do not have to be built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ASSETS = "KUBEBUILDER_ASSETS"
"""Environment variable for the path to a folder that contains etcd and kube-apiserver."""
ENVTEST = "the folder of setup-envtest"
"""Description of the folder in which `setup-envtest use` keeps its downloads."""
SEARCHED = f"{ASSETS}, {ENVTEST} and PATH"

_SERVERS = ("etcd", "kube-apiserver")
_CONTROLLERS = "kube-controller-manager"
_APISERVER = "kube-apiserver"
_CLUSTERCTL = "clusterctl"
_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)\S*")
_LOWEST = (1, 30)  # the first release with ValidatingAdmissionPolicies
_SECONDS = 30


@dataclass(frozen=True)
class InstalledServers:
    """The user's own Kubernetes servers and clusterctl, which capsmith then does not build."""

    paths: dict[str, Path] = field(default_factory=dict)
    """Paths to the executables, by name; empty if there are none."""
    version: str = ""
    """Release of the API server, such as ``v1.34.1``."""
    source: str = ""
    """Description of where the servers were found, such as ``PATH``."""
    ignored: tuple[str, ...] = ()
    """Descriptions of servers that were found but are not used, each with the reason."""

    def describe(self) -> list[str]:
        """Return one sentence about the servers in use, and one about each ignored server."""
        lines = [f"not used: {each}" for each in self.ignored]
        if self.paths:
            folder = self.paths[_APISERVER].parent
            names = ", ".join(self.paths)
            lines.append(f"using {names} {self.version} of {self.source} ({folder})")
        return lines


def find_installed_servers(environment: Mapping[str, str], *, is_built: bool) -> InstalledServers:
    """Return an etcd and a kube-apiserver that the user has installed.

    kube-controller-manager is included if it is in the same folder and from the same release.  The
    folder in `KUBEBUILDER_ASSETS` comes first.  Unless capsmith has already built the servers, the
    folder of setup-envtest (newest release first) and PATH are searched as well.  A kube-apiserver
    that is too old is ignored.
    """
    ignored: list[str] = []
    for source, search in _list_places(environment, is_built=is_built):
        paths = _find_executables(search)
        if not paths.keys() >= set(_SERVERS):
            if source == ASSETS:
                missing = ", ".join(each for each in _SERVERS if each not in paths)
                ignored.append(f"{search} ({source}) has no {missing}")
            continue
        version = read_version(paths[_APISERVER])
        if _parse(version)[:2] < _LOWEST:
            lowest = ".".join(map(str, _LOWEST))
            found = version or "of an unknown release"
            ignored.append(f"{paths[_APISERVER]} is {found}, and {lowest} is the oldest supported")
            continue
        if _CONTROLLERS in paths and read_version(paths[_CONTROLLERS]) != version:
            ignored.append(f"{paths.pop(_CONTROLLERS)} is not {version}")
        return InstalledServers(paths, version, source, tuple(ignored))
    return InstalledServers(ignored=tuple(ignored))


def find_installed_clusterctl(series: str) -> Path | None:
    """Return the path to the clusterctl on PATH, or None if it is not from the release series."""
    found = shutil.which(_CLUSTERCTL)
    if found is None:
        return None
    version = read_version(Path(found), "version", "-o", "short")
    return Path(found) if version.startswith(f"{series}.") else None


def read_version(executable: Path, *arguments: str) -> str:
    """Return the release that an executable prints, or an empty string if it prints none."""
    command = [str(executable), *(arguments or ("--version",))]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ""
    found = _VERSION.search(done.stdout)
    return found[0] if found else ""


def _list_places(environment: Mapping[str, str], *, is_built: bool) -> Iterator[tuple[str, str]]:
    """Yield the places to search, and the value of a PATH with their folders."""
    assets = environment.get(ASSETS)
    if assets:
        yield ASSETS, assets
    if is_built:
        return
    data = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    folders = Path(data, "kubebuilder-envtest", "k8s").glob("*")
    for folder in sorted(folders, key=lambda each: _parse(f"v{each.name}"), reverse=True):
        yield ENVTEST, str(folder)
    yield "PATH", environment.get("PATH", os.defpath)


def _find_executables(search: str) -> dict[str, Path]:
    found = {name: shutil.which(name, path=search) for name in (*_SERVERS, _CONTROLLERS)}
    return {name: Path(path) for name, path in found.items() if path}


def _parse(version: str) -> tuple[int, ...]:
    found = _VERSION.match(version)
    return tuple(map(int, found.groups())) if found else ()
