"""Start and stop a node's processes: containerd, kubelet, kube-scheduler, kube-proxy.

Run this in the node's namespaces.
"""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable
from pathlib import Path

from capsmith.clusters.node.host import find_tool
from capsmith.clusters.node.images import Image, write_archive
from capsmith.clusters.node.plan import (
    ADDRESS,
    NAME,
    PAUSE_IMAGE,
    SOCKET,
    NodePaths,
    build_kubelet_command,
    build_proxy_command,
    build_scheduler_command,
    render_containerd,
    render_kubelet,
    render_network,
)
from capsmith.clusters.node.shell import import_images
from capsmith.clusters.node.tools import NodeTools
from capsmith.clusters.processes.kube import KubeClient
from capsmith.clusters.processes.kubeconfig import render_admin_kubeconfig
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.process import Process, go_environment
from capsmith.clusters.processes.wait import eventually

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_USERS = {
    "kubelet": (f"system:node:{NAME}", "system:nodes"),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", ""),
}


class NodeProcesses:
    """The processes of a lab's node, such as the kubelet, and the images for its Pods."""

    def __init__(
        self, paths: NodePaths, lab: Path, tools: NodeTools, pki: Pki, server: str
    ) -> None:
        """Write all configuration files, without starting a process.

        ``lab`` is the path to the lab's folder, ``server`` the API server's URL.
        """
        self._paths = paths
        self._tools = tools
        folder = tools.kubernetes
        kubeconfigs = {name: self._kubeconfig(pki, server, name) for name in _USERS}
        serving = pki.issue("kubelet-serving", [NAME, ADDRESS], f"system:node:{NAME}")
        plugins, runc = tools.containerd, find_tool("runc") or "runc"
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        paths.containerd_config.write_text(render_containerd(paths, runc, plugins))
        (paths.network / "10-pods.conflist").write_text(render_network(paths))
        kubelet = render_kubelet(paths, lab, pki.ca, serving.cert, serving.key, files)
        paths.kubelet_config.write_text(kubelet)
        commands = {
            "containerd": [str(plugins / "containerd"), "--config", str(paths.containerd_config)],
            "kubelet": build_kubelet_command(folder / "kubelet", paths, kubeconfigs["kubelet"]),
            "scheduler": build_scheduler_command(
                folder / "kube-scheduler", kubeconfigs["scheduler"]
            ),
            "proxy": build_proxy_command(folder / "kube-proxy", kubeconfigs["proxy"]),
        }
        self.processes = {name: self._process(name, each) for name, each in commands.items()}

    def start(self) -> None:
        """Start all processes.

        Raises ProcessError if containerd does not become ready.
        """
        containerd = self.processes["containerd"]
        containerd.start()
        containerd.wait_ready(Path(SOCKET).exists)
        for name in ("kubelet", "scheduler", "proxy"):
            self.processes[name].start()

    def wait_ready(self, client: KubeClient) -> None:
        """Wait until the Node is ready.

        Raises TimeoutError if it takes too long, and ProcessError if the kubelet exits.
        """

        def is_ready() -> bool:
            self.processes["kubelet"].check()
            found = client.find("v1", "Node", NAME)
            return found is not None and _is_ready(found["status"].get("conditions") or [])

        eventually(is_ready, what="the Node is ready")

    def add_images(self, images: list[Image], progress: Callable[[str], None]) -> None:
        """Make images available to Pods, along with the pause image that every Pod needs.

        ``progress`` receives messages about the current step.  Raises NodeError if the import
        fails.
        """
        progress(f"importing {len(images)} images that were built from source")
        pause = Image(PAUSE_IMAGE, self._tools.containerd / "pause", "/pause", "65535:65535")
        architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
        try:
            write_archive(self._paths.archive, [pause, *images], architecture)
            import_images(self._tools.containerd / "ctr", self._paths.archive, [])
        finally:
            self._paths.archive.unlink(missing_ok=True)

    def _process(self, name: str, command: list[str]) -> Process:
        environment = go_environment()
        # containerd starts the shims, and kube-proxy iptables, by name.
        folders = [str(self._tools.containerd), environment.get("PATH", ""), "/usr/sbin", "/sbin"]
        environment["PATH"] = os.pathsep.join(folders)
        return Process(name, command, self._paths.root / f"{name}.log", environment)

    def _kubeconfig(self, pki: Pki, server: str, name: str) -> Path:
        user, group = _USERS[name]
        pair = pki.issue(name, [f"{name}.invalid"], user, group)
        path = self._paths.root / f"{name}.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(render_admin_kubeconfig(server, pki.ca, pair.cert, pair.key))
        return path


def _is_ready(conditions: list[dict[str, str]]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
