"""Run the real kustomize, standalone or in kubectl; both are optional."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.errors import UnreadableInput
from capsmith.manifests.kustomize import KUSTOMIZATION_FILES, REFERENCES
from capsmith.manifests.parse import parse_manifests
from capsmith.workspace.reading import read_document

_PROGRAMS = (("kustomize", "build"), ("kubectl", "kustomize"))
_TIMEOUT = 120.0
"""Seconds."""
_OVERLAY = "buildMetadata: [originAnnotations]\nresources:\n- {folder}\n"
_HINT = "Specify the folder of the kustomization that builds the release, or verify its output."


class KustomizeOutput(NamedTuple):
    """The output of kustomize for a folder."""

    text: str
    folder: Path
    """To which the paths in annotations ``config.kubernetes.io/origin`` are relative."""


def find_kustomize() -> tuple[str, ...] | None:
    """Return the command to which a folder is appended, or None if PATH has no such program."""
    for program, command in _PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return path, command
    return None


def run_kustomize(command: tuple[str, ...], folder: Path) -> KustomizeOutput:
    """Return the objects of a kustomization, annotated with their source files.

    Reads ``folder`` and all folders that it refers to, and writes nothing to them.  Raises
    UnreadableInput if kustomize fails, or if it would have to download something.
    """
    _refuse_remote(folder, set())
    # Imported when it is run: most commands do without.
    import subprocess

    with tempfile.TemporaryDirectory(prefix="capsmith-") as name:
        # No option of the command line adds origins, only a kustomization above the author's.
        above = Path(name).resolve()
        path = os.path.relpath(folder.resolve(), above)
        (above / "kustomization.yaml").write_text(_OVERLAY.format(folder=_quoted(path)))
        try:
            done = subprocess.run([*command, str(above)], capture_output=True, timeout=_TIMEOUT)
        except (OSError, subprocess.SubprocessError) as error:
            raise _refusal(folder, str(error)) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise _refusal(folder, lines[-1].replace(path, str(folder)))
    return KustomizeOutput(done.stdout.decode(errors="replace"), above)


def _refuse_remote(folder: Path, seen: set[Path]) -> None:
    """Raise UnreadableInput if kustomize would take a name for an address: no file has it."""
    seen.add(folder.resolve())
    for file in (folder / name for name in KUSTOMIZATION_FILES):
        if not file.is_file():
            continue
        for kustomization in parse_manifests(read_document(file), str(file))[0]:
            document = dict(kustomization.document)
            named = [name for key in REFERENCES for name in kustomization.listing(key)]
            missing = [each for each in named if not (folder / str(each)).exists()]
            document.pop("commonAnnotations", None)
            for address in (*missing, *_addresses(document)):
                raise UnreadableInput(
                    "verify-remote",
                    f"{address} is outside this tree, and nothing is downloaded",
                    file=str(file),
                    hint=_HINT,
                )
            for below in (folder / str(each) for each in named):
                if below.is_dir() and below.resolve() not in seen:
                    _refuse_remote(below, seen)


def _addresses(value: Any) -> Iterator[str]:
    """Yield the texts that kustomize takes for addresses, wherever it expects a path."""
    if isinstance(value, str):
        if "://" in value and "\n" not in value.strip():
            yield value
    elif isinstance(value, list | dict):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _addresses(below)


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _refusal(folder: Path, reason: str) -> UnreadableInput:
    return UnreadableInput(
        "verify-kustomize", f"kustomize build failed: {reason}", file=str(folder), hint=_HINT
    )
