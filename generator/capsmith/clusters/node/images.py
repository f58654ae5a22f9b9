"""Write image archives, in which each image contains one executable and what it needs.

These are the images of components that a lab builds from source. None of them is pulled.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

_LIBRARY = re.compile(r"(/\S+) \(0x[0-9a-f]+\)")
_MODE = 0o755
# As in images that are built from a Dockerfile.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """An image with one executable and the libraries that it loads."""

    reference: str
    """Name and tag of the image, as used in Pods."""
    binary: Path
    path: str
    """Path to the executable in the image, which is its entry point."""
    user: str
    """User and group, such as ``65532:65532``."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Other files, such as programs that the executable starts, by their path in the image."""


def write_archive(target: Path, images: Sequence[Image], architecture: str) -> None:
    """Write an archive in Docker's format that contains ``images``.

    ``architecture`` is the processor architecture in Go's naming, such as ``amd64``.
    """
    entries = []
    with tarfile.open(target, "w") as archive:
        for number, image in enumerate(images):
            layer = target.with_name(f"{target.name}.{number}")
            try:
                _write_layer(layer, image)
                digest = _hash(layer)
                archive.add(layer, f"{digest}/layer.tar")
            finally:
                layer.unlink(missing_ok=True)
            config = json.dumps(build_config(image, digest, architecture)).encode()
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            _add(archive, name, config)
            layers = [f"{digest}/layer.tar"]
            entries.append({"Config": name, "RepoTags": [image.reference], "Layers": layers})
        _add(archive, "manifest.json", json.dumps(entries).encode())


def build_config(image: Image, digest: str, architecture: str) -> dict[str, object]:
    """Return the configuration for an image whose only layer has the SHA-256 ``digest``."""
    return {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": [image.path], "Env": [f"PATH={_PATH}"], "User": image.user},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }


def parse_libraries(output: str) -> list[str]:
    """Return the paths to the libraries listed in ldd's output; empty for a static executable."""
    return _LIBRARY.findall(output)


def _write_layer(target: Path, image: Image) -> None:
    listed = subprocess.run(["ldd", str(image.binary)], capture_output=True, text=True).stdout
    libraries = {each: Path(each) for each in parse_libraries(listed)}
    files = {**libraries, **image.files, image.path: image.binary}
    with tarfile.open(target, "w") as layer:
        folders = {str(each) for path in files for each in PurePosixPath(path).parents}
        for folder in sorted(folders - {"/"}):
            info = tarfile.TarInfo(folder.lstrip("/"))
            info.type, info.mode = tarfile.DIRTYPE, _MODE
            layer.addfile(info)
        for path, source in files.items():
            info = tarfile.TarInfo(path.lstrip("/"))
            info.size, info.mode = source.stat().st_size, _MODE
            with source.open("rb") as content:
                layer.addfile(info, content)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))
