"""What conformance is given: options, and the files that it reads."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from capsmith.clusters.processes.kube import JSON
from capsmith.errors import UnreadableInput
from capsmith.judge.running.model import Timing
from capsmith.manifests.parse import Manifest, parse_manifests
from capsmith.workspace.reading import read_document

_LARGEST = 1 << 24


class Request(NamedTuple):
    """The options of the command line, not yet parsed."""

    core: str
    """The series of core that is started: ``v1.14``."""
    kubeconfig: Path | None = None
    managers: tuple[str, ...] = ()
    others: tuple[Path, ...] = ()
    env: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    flavor: str = ""
    objects: Path | None = None
    apply: tuple[Path, ...] = ()
    release_version: str = ""
    roles: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    timeout: float = Timing().patience
    quiet: float = Timing().quiet
    logs: Path | None = None
    strict: bool = False


def read_objects(path: Path) -> list[JSON]:
    """Return the objects of a file; raises UnreadableInput if it is not YAML."""
    return [dict(manifest.document) for manifest in read_manifests(path)]


def read_manifests(path: Path) -> list[Manifest]:
    """Return the documents of a file; raises UnreadableInput if it is not YAML."""
    manifests, findings = parse_manifests(read_document(path, _LARGEST), str(path))
    if findings:
        first = findings[0]
        raise UnreadableInput(first.id, first.message, file=str(path), hint="Correct the file.")
    return list(manifests)
