"""Make the image once, and keep it by what it is made of."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capsmith.clusters.processes.tools import kubernetes_version
from tests.e2e.tools.required import required_toolbox

IMAGE: Final = "node.qcow2"
_HERE: Final = Path(__file__).parent
_KUBELET: Final = _HERE.parent / "kubelet"
_SUITE: Final = "bookworm"
_DISK: Final = "2G"
_PACKAGES: Final = (
    "ca-certificates,cloud-init,containerd,containernetworking-plugins,dbus,initramfs-tools,"
    "iproute2,iptables,kmod,linux-image-cloud-amd64,mount,openssl,procps,runc,systemd-sysv,udev,"
    "util-linux"
)
_INITRD: Final = (
    'mkdir -p "$1/etc/initramfs-tools/conf.d"',
    'printf "MODULES=list\\nCOMPRESS=gzip\\n" > "$1/etc/initramfs-tools/conf.d/virtual"',
    'printf "virtio_pci\\nvirtio_blk\\nvirtio_net\\next4\\n" > "$1/etc/initramfs-tools/modules"',
)
_ENABLED: Final = ("systemd-networkd.service", "sentinel-seen.path")
_MASKED: Final = (
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "systemd-networkd-wait-online.service",
)


@dataclass(frozen=True)
class Image:
    """A folder with a disk, and the kernel that boots it."""

    folder: Path

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd"


def cached_image() -> Image:
    """Return the image; make it if an input has changed."""
    cache = Path(os.environ.get("CAPSMITH_VM_CACHE") or Path.home() / ".cache/capsmith/vm")
    target = cache / _digest()
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _build(Path(scratch))
            shutil.rmtree(Path(scratch) / "root")
            Path(scratch, "done").rename(target)
    return Image(target)


def _digest() -> str:
    files = [path for path in sorted(_HERE.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    files += [_KUBELET / "go.mod", _KUBELET / "go.sum"]
    parts = [kubernetes_version().encode()]
    parts += [part for path in files for part in (path.name.encode(), path.read_bytes())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(folder: Path) -> None:
    root, done = folder / "root", folder / "done"
    done.mkdir()
    _debootstrap(root)
    binaries = root / "usr/local/bin"
    toolbox = required_toolbox("the image", ["k8s"])
    for name in ("etcd", "kube-apiserver"):
        shutil.copy(toolbox.path("k8s", name), binaries)
    _build_kubelet(binaries / "kubelet")
    shutil.copy(_HERE / "node.py", binaries / "libvirt-node")
    (binaries / "libvirt-node").chmod(0o755)
    shutil.copytree(_HERE / "files", root, dirs_exist_ok=True)
    (root / "etc/machine-id").write_text("")
    _run("systemctl", f"--root={root}", "enable", *_ENABLED)
    _run("systemctl", f"--root={root}", "mask", *_MASKED)
    for name, pattern in {"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"}.items():
        (found,) = (root / "boot").glob(pattern)
        shutil.copy(found, done / name)
    raw = folder / "node.raw"
    _run("mke2fs", "-q", "-t", "ext4", "-d", root, "-L", "root", raw, _DISK)
    _run("qemu-img", "convert", "-O", "qcow2", raw, done / IMAGE)


def _debootstrap(root: Path) -> None:
    sources = [*Path("/etc/apt/sources.list.d").glob("*.sources"), Path("/etc/apt/sources.list")]
    excluded = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale")]
    _run(
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        f"--include={_PACKAGES}",
        *excluded,
        *(f"--essential-hook={each}" for each in _INITRD),
        _SUITE,
        root,
        *(each for each in sources if each.exists() and each.stat().st_size),
    )
    for leftover in ("var/lib/apt/lists", "var/cache/apt"):
        shutil.rmtree(root / leftover, ignore_errors=True)


def _build_kubelet(target: Path) -> None:
    major, minor = kubernetes_version().removeprefix("v").split(".")[:2]
    values = {"gitVersion": kubernetes_version(), "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items()]
    flags = ["-mod=readonly", "-gcflags=all=-dwarf=false", "-ldflags", " ".join(["-s -w", *stamps])]
    command = ["go", "build", *flags, "-o", str(target), "k8s.io/kubernetes/cmd/kubelet"]
    _run(*command, folder=_KUBELET, CGO_ENABLED="0")


def _run(*command: str | Path, folder: Path | None = None, **environment: str) -> None:
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
