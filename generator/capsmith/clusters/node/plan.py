"""A node's configuration as data: addresses, mounts, network, files and commands.

Nothing here starts a process or changes a file.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

NAME: Final = "node"
ADDRESS: Final = "10.10.0.2"
"""The node's address, in a network namespace of its own."""
SERVICE: Final = "10.96.0.1"
"""Address of the Service `kubernetes`, which Pods use to reach the API server."""
SOCKET: Final = "/run/containerd/containerd.sock"
KUBELET_ROOT: Final = "/var/lib/kubelet"
"""The kubelet's folder inside the node's namespaces."""
PAUSE_IMAGE: Final = "registry.k8s.io/pause:3.10"

_GATEWAY = "10.10.0.1"
_SERVICES = "10.96.0.0/16"
_PODS = "10.244.0.0/24"
_DIGITS = 8

# The kubelet sets these for the whole computer unless they already have the expected values.
SYSCTLS: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class NodePaths:
    """The paths to one node's files in the lab's folder."""

    root: Path

    @property
    def init_pid(self) -> Path:
        """Return the path to the file with the host's process id for the node's first process."""
        return self.root / "init.pid"

    @property
    def logs(self) -> Path:
        """Return the path to the folder that Pods see as /var/log."""
        return self.root / "var-log"

    @property
    def containerd_config(self) -> Path:
        """Return the path to containerd's configuration."""
        return self.root / "containerd.toml"

    @property
    def kubelet_config(self) -> Path:
        """Return the path to the kubelet's configuration."""
        return self.root / "kubelet.yaml"

    @property
    def network(self) -> Path:
        """Return the path to the folder that contains the Pod network's configuration."""
        return self.root / "cni"

    @property
    def archive(self) -> Path:
        """Return the path to the archive with the images to import."""
        return self.root / "images.tar"

    @property
    def sysctls(self) -> Path:
        """Return the path to the folder with files that are mounted over the host's settings."""
        return self.root / "sysctl"


def name_cgroup(lab: Path) -> str:
    """Return the name of the cgroup, directly below the root, that holds a lab's Pods.

    ``lab`` is the path to the lab's folder.  Labs in different folders have different cgroups, even
    if they have the same name.
    """
    folder = lab.resolve()
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:_DIGITS]
    return f"capsmith-lab-{folder.name}-{digest}"


def plan_network() -> list[list[str]]:
    """Return the commands, in order, that create the node's own network."""
    return [
        ["ip", "link", "set", "lo", "up"],
        # Some kernels have no dummy interfaces, so one end of a veth pair has the address.
        ["ip", "link", "add", "node0", "type", "veth", "peer", "name", "node1"],
        ["ip", "address", "add", f"{ADDRESS}/24", "dev", "node0"],
        ["ip", "link", "set", "node0", "up"],
        ["ip", "link", "set", "node1", "up"],
        # Without a default route, Go refuses to listen and kube-proxy cannot detect the node.
        ["ip", "route", "add", "default", "via", _GATEWAY, "dev", "node0"],
    ]


def plan_mounts(paths: NodePaths, lab: Path, sysctls: list[str]) -> list[list[str]]:
    """Return the commands, in order, that hide the host's writable folders.

    ``lab`` is the path to the lab's folder, without symbolic links; the folder stays visible at its
    path.  ``sysctls`` are the keys of `SYSCTLS` that exist on this computer.
    """
    libraries, run = paths.root / "var-lib", paths.root / "run"
    options = f"lowerdir=/var/lib,upperdir={paths.root / 'upper'},workdir={paths.root / 'work'}"
    commands = [
        *_replace("/var/log", paths.logs, lab),
        # The kubelet and containerd write below /var/lib regardless of their configuration.
        ["mount", "-t", "overlay", "overlay", "-o", options, str(libraries)],
        *_replace("/var/lib", libraries, lab),
        # A socket path is limited to 107 characters, and the lab's path may be long.
        ["mkdir", "-p", KUBELET_ROOT],
        ["mount", "--bind", str(paths.root / "kubelet"), KUBELET_ROOT],
        # Otherwise containerd would replace the host containerd's socket.
        ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(run)],
        *_replace("/run", run, lab),
    ]
    for key in sysctls:
        file = paths.sysctls / key.replace("/", "_")
        commands.append(["mount", "--bind", str(file), f"/proc/sys/{key}"])
    # The kubelet mounts the volumes of Pods, and containers must see these mounts.
    return [*commands, ["mount", "--make-rshared", "/"]]


def _replace(hidden: str, shown: Path, lab: Path) -> list[list[str]]:
    """Return the commands that mount ``shown`` on ``hidden``, with the lab's folder in it."""
    commands = []
    if lab.is_relative_to(hidden):
        inside = str(shown / lab.relative_to(hidden))
        commands = [["mkdir", "-p", inside], ["mount", "--bind", str(lab), inside]]
    return [*commands, ["mount", "--rbind", str(shown), hidden]]


def list_folders(paths: NodePaths) -> list[Path]:
    """Return the folders that must exist before running the commands from :func:`plan_mounts`."""
    names = ("upper", "work", "var-lib", "run", "containerd", "kubelet")
    return [paths.logs, paths.network, paths.sysctls, *(paths.root / name for name in names)]


def render_containerd(paths: NodePaths, runc: str, plugins: Path) -> str:
    """Return containerd's configuration in TOML.

    ``runc`` is the path to runc, and ``plugins`` is the path to the folder with network plugins.
    """
    runtime = 'plugins."io.containerd.cri.v1.runtime"'
    images = 'plugins."io.containerd.cri.v1.images"'
    return f"""\
version = 3
root = {_quote(paths.root / "containerd")}
state = "/run/containerd"
oom_score = 0

[grpc]
  address = "{SOCKET}"

# The default is a folder of the host: /opt/containerd.
[plugins."io.containerd.internal.v1.opt"]
  path = {_quote(paths.root / "opt")}

[{images}]
  snapshotter = "overlayfs"

[{images}.pinned_images]
  sandbox = "{PAUSE_IMAGE}"

[{runtime}]
  # Lowering a score needs a capability that root in a container lacks.
  restrict_oom_score_adj = true

[{runtime}.cni]
  bin_dirs = [{_quote(plugins)}]
  conf_dir = {_quote(paths.network)}

[{runtime}.containerd]
  default_runtime_name = "runc"

[{runtime}.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[{runtime}.containerd.runtimes.runc.options]
  BinaryName = {_quote(runc)}
  SystemdCgroup = false
"""


def _quote(value: Path | str) -> str:
    # TOML strings have the same escapes as JSON.
    return json.dumps(str(value))


def render_network(paths: NodePaths) -> str:
    """Return the Pod network's configuration: a bridge with addresses from one range."""
    ipam = {
        "type": "host-local",
        "dataDir": str(paths.root / "addresses"),
        "ranges": [[{"subnet": _PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        # A Pod must be able to reach itself through its Service.
        "hairpinMode": True,
        "ipam": ipam,
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}, indent=1)


def render_kubelet(paths: NodePaths, lab: Path, ca: Path, cert: Path, key: Path, files: int) -> str:
    """Return the kubelet's configuration.

    ``lab`` is the path to the lab's folder, and ``files`` is the maximum number of open files that
    this computer allows a process.
    """
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(cert),
        "tlsPrivateKeyFile": str(key),
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{name_cgroup(lab)}",
        "enforceNodeAllocatable": [],
        "failSwapOn": False,
        "failCgroupV1": False,
        "oomScoreAdj": 0,
        "maxOpenFiles": min(files, 1_000_000),
        "healthzBindAddress": "127.0.0.1",
        "resolvConf": "",
        "volumePluginDir": str(paths.root / "volume-plugins"),
        # A nearly full disk on the host is no reason to evict a lab's Pods.
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # Frequent enough that a lab need not wait for it.
        "syncFrequency": "10s",
        "nodeStatusUpdateFrequency": "5s",
    }
    return yaml.safe_dump(config, sort_keys=False)


def build_api_server_flags(ca: Path, cert: Path, key: Path) -> list[str]:
    """Return the API server flags that a node requires.

    ``cert`` and ``key`` are the files with which the API server authenticates to the kubelet.
    """
    return [
        "--bind-address=0.0.0.0",
        f"--advertise-address={ADDRESS}",
        "--endpoint-reconciler-type=lease",
        f"--service-cluster-ip-range={_SERVICES}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement",
        f"--kubelet-client-certificate={cert}",
        f"--kubelet-client-key={key}",
        f"--kubelet-certificate-authority={ca}",
        "--kubelet-preferred-address-types=InternalIP",
    ]


CONTROLLER_FLAGS: Final = ["--controllers=*", "--use-service-account-credentials=true"]
"""Flags for kube-controller-manager that a node requires."""


def build_kubelet_command(binary: Path, paths: NodePaths, kubeconfig: Path) -> list[str]:
    """Return the command that runs the kubelet."""
    return [
        str(binary),
        f"--config={paths.kubelet_config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NAME}",
        f"--node-ip={ADDRESS}",
        f"--root-dir={KUBELET_ROOT}",
    ]


def build_scheduler_command(binary: Path, kubeconfig: Path) -> list[str]:
    """Return the command that runs kube-scheduler."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
    ]


def build_proxy_command(binary: Path, kubeconfig: Path) -> list[str]:
    """Return the command that runs kube-proxy. It does not change the host's limits."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={NAME}",
        "--proxy-mode=iptables",
        f"--cluster-cidr={_PODS}",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
        "--healthz-bind-address=127.0.0.1:10256",
    ]
