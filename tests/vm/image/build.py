"""Make the image once, and keep it by what it is made of."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from capsmith.clusters.node.images import write_archive
from capsmith.clusters.processes.process import Process
from tests.vm.components import (
    CURRENT,
    RELEASES,
    Components,
    Release,
    build_components,
    list_images,
)

IMAGE: Final = "node.qcow2"
_CONTAINER_MIB: Final = 2560
"""libvirt copies the whole file system, also where it is empty."""
_HERE: Final = Path(__file__).parent
_SUITE: Final = "bookworm"
DISK_GIB: Final = 6
"""Disk of a machine: the kubelet evicts Pods where less than 15 % are free."""
_PACKAGES: Final = (
    "ca-certificates,cloud-init,curl,dbus,initramfs-tools,iproute2,iptables,keepalived,kmod,"
    "linux-image-cloud-amd64,mount,openssl,procps,runc,systemd-sysv,udev,util-linux"
)
_PROGRAMS: Final = ("kubeadm", "kubelet")
_SERVERS: Final = ("etcd", "kube-apiserver")
_RUNTIME: Final = ("containerd", "containerd-shim-runc-v2", "ctr")
_PLUGINS: Final = ("bridge", "host-local", "loopback")
_PRELOADING: Final = """
version = 3
disabled_plugins = [
  "io.containerd.grpc.v1.cri",
  "io.containerd.internal.v1.opt",
  "io.containerd.nri.v1.nri",
]
"""
_INITRD: Final = (
    'mkdir -p "$1/etc/initramfs-tools/conf.d"',
    'printf "MODULES=list\\nCOMPRESS=gzip\\n" > "$1/etc/initramfs-tools/conf.d/virtual"',
    'printf "virtio_pci\\nvirtio_blk\\nvirtio_net\\next4\\n" > "$1/etc/initramfs-tools/modules"',
)
_ENABLED: Final = (
    "containerd.service",
    "kubelet.service",
    "systemd-networkd.service",
    "sentinel-seen.path",
)
_DISABLED: Final = ("keepalived.service",)
"""What bootstrap data may enable."""
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


def container_image(release: Release) -> str:
    """Return the name of the disk for system containers of a release.

    It has no kernel, and nothing of what `libvirt-node` starts.
    """
    return f"node-{release.version}.raw"


def cached_image() -> Image:
    """Return the image; make it if an input has changed."""
    components = build_components()
    cache = cache_folder()
    target = cache / _digest(components)
    if not target.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _build(Path(scratch), components, _cached_debian(cache))
            Path(scratch, "done").rename(target)
    return Image(target)


def cache_folder() -> Path:
    """Return the folder that keeps what is slow to make."""
    return Path(os.environ.get("CAPSMITH_VM_CACHE") or Path.home() / ".cache/capsmith/vm")


def _digest(components: Components) -> str:
    files = [path for path in sorted(_HERE.rglob("*")) if path.is_file() and path.suffix != ".pyc"]
    parts = [folder.name.encode() for folder in components.folders]
    parts += [(_HERE.parent / "components.py").read_bytes()]
    parts += [part for path in files for part in (path.name.encode(), path.read_bytes())]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(scratch: Path, components: Components, debian: Path) -> None:
    done = scratch / "done"
    done.mkdir()
    for release in RELEASES:
        folder = scratch / release.version
        root = _make_root(folder, components, release, debian)
        if release == CURRENT:
            _make_machine(folder, root, done)
        for path in [root / "boot", root / "usr/lib/modules"]:
            shutil.rmtree(path)
        for name in (*_SERVERS, "libvirt-node"):
            (root / "usr/local/bin" / name).unlink()
        _make_file_system(root, done / container_image(release), f"{_CONTAINER_MIB}M")
        shutil.rmtree(folder)


def _make_root(folder: Path, components: Components, release: Release, debian: Path) -> Path:
    """Return the root of a file system in the folder."""
    root = folder / "root"
    root.mkdir(parents=True)
    _run("tar", "--extract", "--numeric-owner", "--xattrs", f"--directory={root}", "-f", debian)
    _add_programs(root, components, release)
    shutil.copytree(_HERE / "files", root, dirs_exist_ok=True)
    (root / "etc/machine-id").write_text("")
    _run("systemctl", f"--root={root}", "enable", *_ENABLED)
    _run("systemctl", f"--root={root}", "disable", *_DISABLED)
    _run("systemctl", f"--root={root}", "mask", *_MASKED)
    _preload(folder, root, components, release)
    return root


def _make_machine(folder: Path, root: Path, done: Path) -> None:
    """Add the disk of a virtual machine, and its kernel, to what is done."""
    for name, pattern in {"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"}.items():
        (found,) = (root / "boot").glob(pattern)
        shutil.copy(found, done / name)
    raw = folder / "node.raw"
    _make_file_system(root, raw, f"{DISK_GIB}G")
    _run("qemu-img", "convert", "-O", "qcow2", raw, done / IMAGE)


def _make_file_system(root: Path, target: Path, size: str) -> None:
    _run("mke2fs", "-q", "-t", "ext4", "-d", root, "-L", "root", target, size)


def _add_programs(root: Path, components: Components, release: Release) -> None:
    binaries, plugins = root / "usr/local/bin", root / "opt/cni/bin"
    plugins.mkdir(parents=True)
    copied = [(components.kubernetes_of(release) / name, binaries) for name in _PROGRAMS]
    copied += [(components.servers / name, binaries) for name in _SERVERS]
    copied += [(components.containerd / name, binaries) for name in _RUNTIME]
    copied += [(components.containerd / name, plugins) for name in _PLUGINS]
    for source, target in copied:
        shutil.copy(source, target)
    shutil.copy(_HERE / "node.py", binaries / "libvirt-node")
    (binaries / "libvirt-node").chmod(0o755)


def _preload(folder: Path, root: Path, components: Components, release: Release) -> None:
    """Unpack the images of Pods where the machine's containerd looks for them."""
    archive = folder / "images.tar"
    write_archive(archive, list_images(components, root, release), "amd64")
    import_images(folder, root, components.containerd, [archive])


def import_images(folder: Path, root: Path, containerd: Path, archives: Sequence[Path]) -> None:
    """Unpack archives with images where the containerd of a root looks for them.

    ``folder`` is for files meanwhile, and ``containerd`` has the executables.
    """
    with _run_containerd(folder, root, containerd / "containerd") as socket:
        command = (containerd / "ctr", f"--address={socket}", "--namespace=k8s.io")
        flags = ("--local", "--snapshotter=overlayfs", "--discard-unpacked-layers")
        for archive in archives:
            _run(*command, "images", "import", *flags, archive)


@contextmanager
def _run_containerd(folder: Path, root: Path, program: Path) -> Iterator[Path]:
    """Run containerd with the machine's folder, and end it; yield its socket."""
    settings, socket = folder / "containerd.toml", folder / "containerd.sock"
    settings.write_text(_PRELOADING)
    folders = [f"--root={root}/var/lib/containerd", f"--state={folder}/state"]
    command = [str(program), f"--config={settings}", f"--address={socket}", *folders]
    process = Process("containerd", command, folder / "containerd.log")
    process.start()
    try:
        process.wait_ready(socket.exists)
        yield socket
    finally:
        process.stop()


def _cached_debian(cache: Path) -> Path:
    """Return an archive of the distribution, which takes longer than all else."""
    parts = "\0".join([_SUITE, _PACKAGES, *_INITRD])
    target = cache / f"debian-{hashlib.sha256(parts.encode()).hexdigest()[:16]}.tar"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            archive = Path(scratch) / "debian.tar"
            _debootstrap(archive)
            archive.rename(target)
    return target


def _debootstrap(archive: Path) -> None:
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
        archive,
        *(each for each in sources if each.exists() and each.stat().st_size),
    )


def _run(*command: str | Path, folder: Path | None = None, **environment: str) -> None:
    env = {**os.environ, **environment}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
