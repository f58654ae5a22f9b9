"""Write the Go modules of the releases that tests run.

`schemas/compatibility.yaml` names the releases.  A module that pins its release already is left as
it is, so that nothing changes without a change of the table; modules of other releases go.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capsmith.clusters.node import tools
from capsmith.clusters.node.tools import list_node_modules
from capsmith.clusters.processes.tools import build
from capsmith.clusters.processes.tools.catalogue import (
    core_module,
    kubeadm_module,
    kubernetes_module,
    list_modules,
    load_releases,
)

_FOLDER = Path(build.__file__).parent
_NODE = Path(tools.__file__).with_suffix("")
"""The folder of a node's modules, of which Kubernetes follows the table of releases."""
BLUEPRINT = Path(__file__).parents[2] / "blueprints" / "project" / "e2e"
_KUBERNETES = "k8s.io/kubernetes"
_CORE = "sigs.k8s.io/cluster-api"
_ETCD = "go.etcd.io/etcd"


def update_modules() -> Iterator[str]:
    """Write missing and outdated modules and delete others; yield a line for each change.

    Raises SystemExit with the output of Go if it fails.
    """
    yield from _delete_others()
    yield from _write_outdated()
    yield from _write_blueprint(BLUEPRINT)


def _delete_others() -> Iterator[str]:
    pins = _pins()
    for folder in sorted(_FOLDER.glob("*/go.mod")):
        if folder.parent.name not in pins:
            shutil.rmtree(folder.parent)
            yield f"deleted {folder.parent.name}"


@dataclass(frozen=True)
class _Module:
    folder: Path
    name: str
    packages: tuple[str, ...]
    path: str
    """The Go module of the project whose release it pins."""
    release: str

    @property
    def is_outdated(self) -> bool:
        return not _is_pinned(self.folder / "go.mod", self.path, self.release)


def find_outdated() -> list[Path]:
    """Return the folders of modules that are missing or pin another release than the table."""
    return [each.folder for each in _modules() if each.is_outdated]


def _modules() -> Iterator[_Module]:
    pins = _pins()
    for name, module in list_modules().items():
        packages = tuple(each.package for each in module.binaries)
        yield _Module(_FOLDER / name, f"e2e.capsmith.example/{name}", packages, *pins[name])
    node = list_node_modules()[0]
    yield _Module(
        _NODE / node.folder,
        f"e2e.capsmith.example/{node.folder}",
        tuple(each.package for each in node.binaries),
        *pins[kubernetes_module()],
    )


def _write_outdated() -> Iterator[str]:
    for each in _modules():
        if each.is_outdated:
            _write(each)
            yield f"wrote {each.folder.name}: {each.path} {each.release}"


def _write_blueprint(folder: Path) -> Iterator[str]:
    """Write the Go module of Cluster API's end-to-end specs, which generated repositories have."""
    version = load_releases().core.default.release
    module = folder / "go.mod.jinja"
    if _is_pinned(module, f"{_CORE}/test", version):
        return
    with tempfile.TemporaryDirectory() as scratch:
        for blueprint in folder.glob("*_test.go.jinja"):
            text = blueprint.read_text()
            # What is rendered for a provider imports nothing.
            if "{{" not in text:
                (Path(scratch) / blueprint.stem).write_text(text)
        _write(_Module(Path(scratch), "e2e", (), f"{_CORE}/test", version))
        for name in ("go.mod", "go.sum"):
            shutil.copy(Path(scratch) / name, folder / f"{name}.jinja")
    yield f"wrote {module.relative_to(BLUEPRINT.parents[2])}: {_CORE}/test {version}"


def _pins() -> dict[str, tuple[str, str]]:
    """Return by module the path and the version of the Go module that it is about."""
    table = load_releases()
    found = {
        kubernetes_module(each.series): (_KUBERNETES, each.release)
        for each in table.kubernetes.executed
    }
    for each in table.core.executed:
        found[core_module(each.series)] = (_CORE, each.release)
        if each.kubeadm:
            found[kubeadm_module(each.series)] = (_CORE, each.release)
    return found


def _is_pinned(file: Path, path: str, version: str) -> bool:
    requirement = re.compile(rf"^\s*{re.escape(path)} {re.escape(version)}( // indirect)?$", re.M)
    return file.exists() and requirement.search(file.read_text()) is not None


def _write(module: _Module) -> None:
    path, version, folder = module.path, module.release, module.folder
    upstream = _go_mod(path, version)
    requirements = [f"{path} {version}"]
    # A module below upstream's own: the one above it is released with it.
    requirements += [f"{each} {version}" for each in _replaced(upstream, "../")]
    if any(package.startswith(_ETCD) for package in module.packages):
        # Kubernetes pins the client of etcd; the server of the same release goes with it.
        requirements += [
            f"{_ETCD}/server/v3 {each['Version']}"
            for each in upstream["Require"]
            if each["Path"] == f"{_ETCD}/client/v3"
        ]
    folder.mkdir(exist_ok=True)
    parts = [
        f"module {module.name}",
        f"go {upstream['Go']}",
        _block("tool", sorted(module.packages)),
        _block("require", requirements),
        _block("replace", _replacements(upstream, path, version)),
    ]
    (folder / "go.mod").write_text("\n\n".join(part for part in parts if part) + "\n")
    (folder / "go.sum").unlink(missing_ok=True)
    _go(["mod", "tidy"], folder)


def _replacements(upstream: dict[str, Any], path: str, version: str) -> list[str]:
    """Return the release of each module that upstream replaces by a folder of its repository.

    A module's replacements hold only where it is the main one.
    """
    published = f"v0.{version.partition('.')[2]}" if path == _KUBERNETES else version
    return [f"{each} => {each} {published}" for each in _replaced(upstream, "./", "../")]


def _replaced(upstream: dict[str, Any], *prefixes: str) -> list[str]:
    """Return the modules that upstream replaces by folders with paths of these prefixes."""
    replacements = upstream.get("Replace") or []
    return [
        each["Old"]["Path"] for each in replacements if each["New"]["Path"].startswith(prefixes)
    ]


def _block(word: str, lines: list[str]) -> str:
    return "\n".join([f"{word} (", *(f"\t{line}" for line in lines), ")"]) if lines else ""


def _go_mod(path: str, version: str) -> dict[str, Any]:
    download = json.loads(_go(["mod", "download", "-json", f"{path}@{version}"], _FOLDER))
    found: dict[str, Any] = json.loads(_go(["mod", "edit", "-json", download["GoMod"]], _FOLDER))
    return found


def _go(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(["go", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"go {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout
