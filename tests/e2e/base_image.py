"""A base for providers' images where no registry can be reached: this machine's Python.

It has the names of the images from which generated Dockerfiles start, so that tests use the
generated Dockerfile.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from capsmith.clusters.node.images import parse_libraries

NAMES: Final = ("docker.io/library/python:3.13-slim", "docker.io/library/python:3.13")
_PROGRAMS = ("sh", "env", "mkdir", "chmod", "cat", "rm", "cp", "ls", "id", "sort")
# Packages of other projects load these although no library of Python does.
_LIBRARIES = ("libpthread.so.0", "libdl.so.2", "libm.so.6", "librt.so.1", "libgcc_s.so.1")
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_WHEELS = "usr/share/wheels"
_CONTAINERFILE = """\
FROM scratch
ADD root.tar /
ENV PATH=/usr/local/bin:/usr/bin:/bin PYTHONHOME=/usr/local
RUN python -m ensurepip
"""


def has_base_images() -> bool:
    """Return whether buildah has all base images of the Dockerfiles."""
    return all(
        subprocess.run(["buildah", "inspect", "--type=image", name], capture_output=True).returncode
        == 0
        for name in NAMES
    )


def build_base_images(folder: Path, compiled: Sequence[str] = ()) -> None:
    """Build the images in an empty folder, and give them their names.

    ``compiled`` are requirements without wheels for each platform: they are compiled here, and the
    images have the wheels, with the libraries that these load, where pip finds them.
    """
    root = folder / "root"
    for name in (
        "bin",
        "tmp",
        "etc/ssl/certs",
        "usr/bin",
        "usr/local/bin",
        "usr/local/lib",
        "root",
    ):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    for program in _PROGRAMS:
        shutil.copy(str(shutil.which(program)), root / "bin" / program)
    (root / "usr/bin/env").symlink_to("/bin/env")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    settings = ["[global]"]
    if _CERTIFICATES.exists():
        shutil.copy(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"))
        settings.append(f"cert = {_CERTIFICATES}")
    if compiled:
        _compile(compiled, root / _WHEELS, folder / "unpacked")
        settings += [f"find-links = /{_WHEELS}", "prefer-binary = true"]
    (root / "etc/pip.conf").write_text("\n".join([*settings, ""]))
    _copy_python(root / "usr/local")
    _copy_libraries(root, root, folder / "unpacked")
    subprocess.run(["tar", "-C", str(root), "-cf", str(folder / "root.tar"), "."], check=True)
    (folder / "Containerfile").write_text(_CONTAINERFILE)
    tags = [f"--tag={name}" for name in NAMES]
    command = ["buildah", "build", "--isolation=chroot", "--network=host", *tags, str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def _compile(requirements: Sequence[str], wheels: Path, unpacked: Path) -> None:
    """Make wheels, and unpack them to see which libraries they load."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", f"--wheel-dir={wheels}"]
    subprocess.run([*command, *requirements], check=True, capture_output=True)
    for wheel in wheels.iterdir():
        shutil.unpack_archive(wheel, unpacked, "zip")


def _copy_python(target: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    prefix = Path(sys.base_prefix)
    ignored = shutil.ignore_patterns(
        "__pycache__", "test", "site-packages", "config-*", "*.a", "idlelib", "tkinter", "_tkinter*"
    )
    shutil.copytree(prefix / "lib" / version, target / "lib" / version, ignore=ignored)
    (target / "lib" / version / "site-packages").mkdir()
    for library in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy(library, target / "lib" / library.name)
    shutil.copy(prefix / "bin" / version, target / "bin" / version)
    for name in ("python", "python3"):
        (target / "bin" / name).symlink_to(version)


def _copy_libraries(root: Path, *folders: Path) -> None:
    """Copy what the executables and extensions in the folders load."""
    paths = [path for folder in folders for path in folder.rglob("*")]
    binaries = [path for path in paths if path.suffix == ".so" or "bin" in path.parts]
    files = [str(path) for path in binaries if path.is_file() and not path.is_symlink()]
    listed = subprocess.run(["ldd", *files], capture_output=True, text=True).stdout
    found = {Path(each) for each in parse_libraries(listed)}
    beside = next(path.parent for path in found if path.name.startswith("libc.so"))
    found |= {beside / name for name in _LIBRARIES if (beside / name).exists()}
    for path in found:
        target = root / os.path.relpath(path, "/")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
