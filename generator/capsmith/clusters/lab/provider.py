"""A provider's generated repository, as used by a lab: name, releases, manager and samples."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from capsmith.clusters.lab.errors import (
    LabError,
    keep_tail,
    provider_missing,
    provider_not_generated,
)
from capsmith.clusters.processes.component import ProviderRelease, read_newest_version
from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.tools.build import find_kubectl
from capsmith.errors import UnreadableInput
from capsmith.manifests.parse import read_substituted, text_of
from capsmith.regular_files import read_regular, read_regular_text

_RELEASED = ("templates", "metadata.yaml", "hack/release.py")
_IN_IMAGE = (
    *("Dockerfile", "pyproject.toml", "requirements.lock", "requirements-build.lock"),
    *("src", "vendor"),
)
_CONFIG = "config"
_DESCRIPTION = "provider.yaml"
_MANIFEST = "lab-manifest"
"""Error id for a sample or a CRD that cannot be read."""
_WRITTEN = ("out", "__pycache__")
_SECONDS = 300
_LARGEST = 1 << 31
"""Maximum bytes of a file that count for a digest."""
_LIST_FAULTS = (
    "import dataclasses, capsmith_runtime.fault_injection as module;"
    " print(*(each.name for each in dataclasses.fields(module.Faults)))"
)
_IMAGE = "capsmith.invalid/lab"
"""Image of the Deployment, of which no Pod is ever started."""


class ProviderRepository:
    """A provider's generated repository, as a lab uses it.

    :func:`read_provider` creates instances.
    """

    def __init__(self, folder: Path, spec: dict[str, Any], package: str) -> None:
        self.folder = folder
        self.spec = spec
        """Content of provider.yaml, which may contain errors."""
        self.package = package

    @property
    def name(self) -> str:
        """Return the provider's name, as in provider.yaml."""
        return str(self.spec["name"])

    @property
    def has_infrastructure(self) -> bool:
        """Return whether the provider has an infrastructure section and thus a cluster template."""
        return bool(self.spec.get("infrastructure"))

    @property
    def python(self) -> str:
        """Return the path to the Python interpreter that runs the provider.

        This is the one in the repository's virtual environment or, if there is none, capsmith's
        own.
        """
        own = self.folder / ".venv" / "bin" / "python"
        return str(own) if own.exists() else sys.executable

    @property
    def import_path(self) -> str:
        """Return the PYTHONPATH for running the provider's manager."""
        folders = [self.folder / "src", self.folder / "vendor"]
        return os.pathsep.join(str(each) for each in folders if each.is_dir())

    @property
    def prerequisites(self) -> list[JSON]:
        """Return the sample objects to create before a cluster: identities and their Secrets.

        If a sample file contains an identity, or an object of a cluster-scoped kind, all objects in
        the file are included.
        """
        samples = [
            path
            for folder in self._config_folders()
            for path in sorted((self.folder / folder / "samples").glob("*.yaml"))
        ]
        files = [_read_documents(path, _MANIFEST) for path in samples]
        kinds = self._cluster_scoped() | self._identity_kinds()
        selected = [file for file in files if any(text_of(each, "kind") in kinds for each in file)]
        return [each for file in selected for each in file]

    @property
    def cluster_template(self) -> Path:
        """Return the path to the cluster template without flavor, which may not exist."""
        return self.folder / "templates" / "cluster-template.yaml"

    def check_manager(self) -> None:
        """Raise LabError if the provider's code is missing or cannot be imported."""
        done = self.run([self.python, "-m", self.package, "--help"])
        if done.returncode == 0:
            return
        hint = f"Install it: {self.python} -m pip install --editable {self.folder}."
        if "ModuleNotFoundError" not in done.stderr:
            hint = "Correct the code."
        message = f"{self.python} cannot import the manager:\n{keep_tail(done.stderr)}"
        raise LabError("lab-manager-imports", message, file=str(self.folder), hint=hint)

    def list_faults(self) -> tuple[str, ...]:
        """Return the names of the faults that the provider's simulated cloud can inject.

        They depend on the version of its runtime library; the result is empty if the library has
        none.
        """
        done = self.run([self.python, "-c", _LIST_FAULTS])
        return tuple(done.stdout.split()) if done.returncode == 0 else ()

    def first_version(self) -> str:
        """Return the first version of the newest release series in metadata.yaml."""
        return read_newest_version(self.folder)

    def release(self, version: str, out: Path, *, has_own_image: bool = False) -> ProviderRelease:
        """Build a release with version ``version`` in the folder ``out``, and return it.

        Files of an earlier release in ``out`` are removed. Unless ``has_own_image`` is true, the
        release refers to an image that cannot be pulled. Raises LabError if the build fails,
        leaving ``out`` unchanged.
        """
        built = out.with_name(f"{out.name}.new")
        shutil.rmtree(built, ignore_errors=True)
        image = [] if has_own_image else [f"--image={_IMAGE}"]
        command = [self.python, "hack/release.py", "build", version, *image]
        done = self.run([*command, f"--out={built}", f"--kubectl={find_kubectl()}"])
        if done.returncode != 0:
            message = f"the release cannot be built:\n{keep_tail(done.stderr or done.stdout)}"
            hint = "Correct what it reports, or run capsmith update."
            raise LabError("lab-release", message, file=str(self.folder), hint=hint)
        if out.exists():
            shutil.rmtree(out)
        built.rename(out)
        return ProviderRelease(out, version)

    def run(self, argv: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository, with PYTHONPATH set for the provider's code.

        Returns the completed process, whatever its exit code.  Raises LabError if the command
        cannot be run or takes too long.
        """
        environment = {**os.environ, "PYTHONPATH": self.import_path}
        # Python must not write into the repository, because that would change its digests and git
        # status.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        try:
            return subprocess.run(
                argv,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            hint = "Run it by hand to see why."
            message = f"{' '.join(argv)}: {error}"
            raise LabError("lab-command", message, file=str(self.folder), hint=hint) from error

    def released_digest(self) -> str:
        """Return a digest of a release's source files."""
        return self._digest(self._released_files())

    def image_digest(self) -> str:
        """Return a digest of an image's source files."""
        return self._digest(self._files(*_IN_IMAGE))

    def code_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever a code file changes."""
        return frozenset(_stamps(self._files("src")))

    def image_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever an image's source files change."""
        return frozenset(_stamps(self._files(*_IN_IMAGE)))

    def release_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever a release's source files change."""
        return frozenset(_stamps(self._released_files()))

    def description_stamp(self) -> frozenset[tuple[str, int, int]]:
        """Return a value that changes whenever provider.yaml changes."""
        return frozenset(_stamps(self._files("provider.yaml")))

    def _digest(self, paths: Iterator[Path]) -> str:
        digest = hashlib.sha256()
        for path in sorted(paths):
            digest.update(f"{path.relative_to(self.folder)}\0".encode())
            digest.update(_content(path))
        return digest.hexdigest()

    def _cluster_scoped(self) -> set[str]:
        found = set()
        for path in self._files(*self._config_folders()):
            if path.suffix == ".yaml" and "crd" in path.parts:
                for each in _read_documents(path, _MANIFEST):
                    if text_of(each, "spec", "scope") == "Cluster":
                        found.add(text_of(each, "spec", "names", "kind"))
        return found - {""}

    def _identity_kinds(self) -> set[str]:
        """Return the kinds of identities, which may be namespaced."""
        declared = self.spec.get("credentials") or []
        entries = declared if isinstance(declared, list) else [declared]
        return {str(each["kind"]) if isinstance(each, dict) else str(each) for each in entries}

    def _released_files(self) -> Iterator[Path]:
        return self._files(*self._config_folders(), *_RELEASED)

    def _config_folders(self) -> list[str]:
        """Return the manifest folders; additional components have separate folders."""
        found = [self.folder / _CONFIG, *sorted(self.folder.glob(f"*/{_CONFIG}"))]
        return [str(each.relative_to(self.folder)) for each in found if each.is_dir()]

    def _files(self, *names: str) -> Iterator[Path]:
        for name in names:
            path = self.folder / name
            if path.is_file():
                yield path
            for folder, folders, files in os.walk(path):
                folders[:] = [each for each in folders if each not in _WRITTEN]
                yield from (Path(folder) / each for each in files)


def read_provider(folder: Path) -> ProviderRepository:
    """Return the provider repository in a folder.

    Raises UnreadableInput if the folder contains no generated provider.
    """
    folder = folder.resolve()
    spec = _spec(folder)
    if spec is None:
        raise provider_missing(folder)
    mains = sorted((folder / "src").glob("*/__main__.py"))
    if not mains:
        raise provider_not_generated(folder, "src/*/__main__.py")
    for needed in ("hack/release.py", "metadata.yaml"):
        if not (folder / needed).is_file():
            raise provider_not_generated(folder, needed)
    return ProviderRepository(folder, spec, mains[0].parent.name)


def read_provider_name(folder: Path) -> str | None:
    """Return the provider's name from provider.yaml, or None if the file does not exist."""
    spec = _spec(folder)
    return None if spec is None else str(spec["name"])


def _spec(folder: Path) -> dict[str, Any] | None:
    """Return the content of provider.yaml, or None if there is no file.

    The content includes a name.
    """
    path = folder / _DESCRIPTION
    if not path.is_file():
        return None
    documents = _read_documents(path, "lab-no-provider")
    if len(documents) != 1 or "name" not in documents[0]:
        raise _unreadable(path, "lab-no-provider", "no name")
    return {**documents[0], "name": str(documents[0]["name"])}


def _read_documents(path: Path, id: str) -> list[JSON]:
    """Return the documents in a YAML file of the repository.

    Raises UnreadableInput with the given id if the file cannot be read.
    """
    try:
        text = read_regular_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise _unreadable(path, id, str(error)) from error
    manifests, findings = read_substituted(text, str(path), text)
    for found in findings:
        raise _unreadable(path, id, found.message, found.location.line)
    return [dict(each.document) for each in manifests]


def _unreadable(path: Path, id: str, reason: str, line: int = 0) -> UnreadableInput:
    what, hint = "the manifest cannot be read", "Correct it, or run capsmith update."
    if path.name == _DESCRIPTION:
        what = "it does not describe a valid provider"
        hint = "Correct it: capsmith validate shows where."
    return UnreadableInput(id, f"{what}: {reason}", file=str(path), line=line, hint=hint)


def _stamps(paths: Iterator[Path]) -> Iterator[tuple[str, int, int]]:
    for path in paths:
        try:
            found = path.stat()
        except OSError:
            continue
        if path.suffix not in (".pyc", ".swp") and not path.name.startswith("."):
            yield str(path), found.st_mtime_ns, found.st_size


def _content(path: Path) -> bytes:
    try:
        return read_regular(path, _LARGEST)
    except OSError:
        return b""
