"""Determine whether this computer can run a node, and find the host's own tools."""

from __future__ import annotations

import ctypes
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capsmith.clusters.node.errors import HostUnsuitable

_CGROUPS: Final = Path("/sys/fs/cgroup")
_UNIFIED = "cgroup.controllers"
"""File at the root of a cgroup v2 hierarchy."""
_CONTROLLERS = ("cpu", "memory", "pids")
_DELEGATED = ("cpu", "cpuset", "hugetlb", "memory", "pids")
"""Controllers that the kubelet needs if the kernel has them."""
_ENABLED = "cgroup.subtree_control"

# Executables with the Debian packages that contain them.
TOOLS: Final = {
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
_SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CLONE_NEWNET = 0x40000000
_ATTEMPTS = 50
_ATTEMPT_SECONDS = 0.1


@dataclass(frozen=True)
class HostFacts:
    """The properties of this computer that decide whether it can run a lab's node.

    :func:`read_facts` determines them, and :func:`find_missing` checks them.
    """

    is_root: bool
    may_unshare: bool
    """Whether processes can have their own namespaces. Containers often do not allow this."""
    has_overlay: bool
    cgroups: tuple[str, ...]
    """Names of the cgroup controllers in which this process can create groups."""
    tools: Mapping[str, str | None]
    """Path to each executable in `TOOLS`; None if it is missing."""


def find_missing(facts: HostFacts) -> list[str]:
    """Return a sentence for each of a node's requirements that a computer does not meet."""
    missing = []
    if not facts.is_root:
        missing.append("root is needed, for namespaces, mounts and cgroups")
    elif not facts.may_unshare:
        missing.append("the kernel or the container refuses new namespaces (CAP_SYS_ADMIN)")
    if not facts.has_overlay:
        missing.append("the kernel has no overlay file system (modprobe overlay)")
    absent = [each for each in _CONTROLLERS if each not in facts.cgroups]
    if facts.is_root and absent:
        missing.append(f"no cgroups can be created for {', '.join(absent)}")
    packages = sorted({TOOLS[name] for name, path in facts.tools.items() if path is None})
    if packages:
        names = ", ".join(name for name, path in facts.tools.items() if path is None)
        missing.append(f"not found: {names} (Debian: apt-get install {' '.join(packages)})")
    return missing


def require_host() -> None:
    """Raise HostUnsuitable unless this computer can run a node."""
    missing = find_missing(read_facts())
    if missing:
        raise HostUnsuitable(missing)


def read_facts() -> HostFacts:
    """Return what this computer has for a node: privileges, file systems, cgroups and tools."""
    is_root = os.geteuid() == 0
    return HostFacts(
        is_root=is_root,
        may_unshare=is_root and _may_unshare(),
        has_overlay="overlay" in Path("/proc/filesystems").read_text(encoding="utf-8").split(),
        cgroups=tuple(each for each in _CONTROLLERS if _is_writable(each)),
        tools={name: find_tool(name) for name in TOOLS},
    )


def find_tool(name: str) -> str | None:
    """Return the path to one of the host's tools, or None if it is missing.

    Finds the tool even if its folder is not on PATH.
    """
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{_SYSTEM_PATH}")


def _may_unshare() -> bool:
    child = os.fork()
    if child == 0:
        os._exit(ctypes.CDLL(None).unshare(_CLONE_NEWNET) != 0)
    return os.waitpid(child, 0)[1] == 0


def _is_writable(controller: str) -> bool:
    if (_CGROUPS / _UNIFIED).is_file():
        known = (_CGROUPS / _UNIFIED).read_text(encoding="utf-8").split()
        return controller in known and os.access(_CGROUPS, os.W_OK)
    folder = _CGROUPS / controller
    return folder.is_dir() and os.access(folder, os.W_OK)


def find_hierarchies(root: Path = _CGROUPS) -> list[Path]:
    """Return the folders of the cgroup hierarchies that have controllers; cgroup v1 has several."""
    if (root / _UNIFIED).is_file():
        return [root]
    return [each for each in sorted(root.iterdir()) if each.is_dir() and each.name != "unified"]


def create_cgroups(name: str, root: Path = _CGROUPS) -> None:
    """Create a cgroup directly below each hierarchy's root.

    Raises HostUnsuitable if the controllers that the kubelet needs cannot be enabled for it.
    """
    for hierarchy in find_hierarchies(root):
        is_unified = (hierarchy / _UNIFIED).is_file()
        known = _read_words(hierarchy / _UNIFIED) if is_unified else []
        available = [each for each in _DELEGATED if each in known]
        # A group has only the controllers that its parent enables for its children.
        if is_unified:
            _enable(hierarchy, available)
        with suppress(FileExistsError):
            (hierarchy / name).mkdir()
        if is_unified:
            found = _read_words(hierarchy / name / _UNIFIED)
            absent = [each for each in available if each not in found]
            if absent:
                raise HostUnsuitable([f"the cgroup {name} has no {', '.join(absent)}"])
            _enable(hierarchy / name, available)


def _enable(group: Path, controllers: list[str]) -> None:
    """Enable controllers for the groups below a cgroup of version 2."""
    try:
        enabled = _read_words(group / _ENABLED)
        absent = [f"+{each}" for each in controllers if each not in enabled]
        if absent:
            (group / _ENABLED).write_text(" ".join(absent), encoding="utf-8")
    except OSError as error:
        # EBUSY: a container's root group has processes, but groups with controllers must not have
        # any.
        names = ", ".join(controllers)
        reason = f"the cgroup controllers {names} cannot be enabled: {error.strerror}"
        raise HostUnsuitable([f"{reason} ({group / _ENABLED})"]) from error


def _read_words(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split()


def remove_cgroups(
    name: str, root: Path = _CGROUPS, wait: Callable[[float], None] = time.sleep
) -> None:
    """Remove a cgroup, and all groups below it, from all hierarchies; do nothing if there is none.

    Waits up to five seconds for processes that are exiting. Groups that still have processes after
    that are kept. ``wait`` is called with a number of seconds.
    """
    for _ in range(_ATTEMPTS):
        # runc also creates groups in the version 2 hierarchy, wherever that is mounted.
        groups = [each for each in (root / name, *root.glob(f"*/{name}")) if each.is_dir()]
        for folder in [each[0] for group in groups for each in os.walk(group, topdown=False)]:
            with suppress(OSError):
                Path(folder).rmdir()
        if not any(each.is_dir() for each in groups):
            return
        wait(_ATTEMPT_SECONDS)
