"""Run the real kustomize, as a separate program or as part of kubectl. Both are optional."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from capsmith.errors import UnreadableInput
from capsmith.manifests.kustomize import KUSTOMIZATION_FILES, REFERENCES
from capsmith.manifests.parse import list_of, parse_manifests, text_of
from capsmith.regular_files import read_regular_text
from capsmith.workspace.reading import read_document

_PROGRAMS = (("kustomize", "build"), ("kubectl", "kustomize"))
_TIMEOUT = 120.0
"""Timeout of kustomize, in seconds."""
_OVERLAY = "buildMetadata: [originAnnotations]\nresources:\n- {folder}\n"
_MOST_BUILDS = 2_000
"""Maximum number of kustomizations in a build, each as often as others name it."""
_ANCHOR, _ALIAS = re.compile(r"(?:^|[\s:,\[{-])&\w"), re.compile(r"(?:^|[\s:,\[{-])\*\w")
_CRASHES = ("fatal error: ", "panic: ")
_LONGEST_PATH = 1024
"""Maximum characters of a path in a kustomization that is looked up."""
_PLUGINS = ("generators", "transformers", "validators")
_FOLLOWED = (*REFERENCES, *_PLUGINS)
_UNCHANGED = frozenset({"apiversion", "kind", "metadata", *REFERENCES})
"""Keys, in lower case, with which a kustomization builds its files as they are."""
_PATCHES = ("patches", "patchesstrategicmerge", "patchesjson6902")
"""Keys of patches, in lower case."""
_VALUES = frozenset({"commonannotations", "annotations", "literals"})
"""Keys, in lower case, below which strings are plain values rather than paths."""
_REPOSITORY = re.compile(
    r"""^git:: | ^[^/]+@[^/]+[:/]                             # git::PATH, git@HOST:PATH
    | ^(?:[\w-]+\.)*(?:github|gitlab|bitbucket)\.(?:com|org)[:/] | ^dev\.azure\.com/
    | \.git(?:$|[/?]) | /_git/ | \?(?:ref|version|submodules|timeout)=
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Names that kustomize clones even if there is a folder of that name (RepoSpec in package git)."""
_NOWHERE = {
    **dict.fromkeys(
        ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"
    ),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), ""),
}
_LOGGED = re.compile(r'[EWIF]\d{4} [\d:.]+ +\d+ \S+\] "command failed" err="(.*)"$')
_OUTSIDE = re.compile(r"security; file '([^']*)' is not in or below '([^']*)'")
_BEGINS = '"command failed" err=<'
_HINT = "Specify the folder of the kustomization that builds the release, or verify its output."


class KustomizeOutput(NamedTuple):
    """The objects that kustomize built from a folder, as YAML."""

    text: str
    folder: Path
    """Folder that the paths in ``config.kubernetes.io/origin`` annotations are relative to."""


def find_kustomize() -> tuple[str, ...] | None:
    """Return the build command without its folder, or None if kustomize is not on PATH."""
    for program, command in _PROGRAMS:
        path = shutil.which(program)
        if path is not None:
            return path, command
    return None


def run_kustomize(command: tuple[str, ...], folder: Path) -> KustomizeOutput:
    """Return the objects that a kustomization builds, annotated with their source files.

    Reads ``folder`` and all folders that it refers to, and does not write to them.  Raises
    UnreadableInput if kustomize fails, or if it would have to download something.
    """
    _refuse_remote(folder)
    # Imported only if used, because most commands do not need it.
    import subprocess

    with tempfile.TemporaryDirectory(prefix="capsmith-") as name:
        # A safeguard for anything the check above misses: kustomize finds neither git nor a server.
        environment = {**os.environ, **_NOWHERE, "PATH": name}
        # No command line option adds origins, only a kustomization around the author's.
        above = Path(name).resolve()
        path = os.path.relpath(folder.resolve(), above)
        (above / "kustomization.yaml").write_text(_OVERLAY.format(folder=_quoted(path)))
        try:
            done = subprocess.run(
                [*command, str(above)], capture_output=True, timeout=_TIMEOUT, env=environment
            )
        except subprocess.TimeoutExpired as error:
            raise _refusal(folder, f"it has not ended after {_TIMEOUT:g} seconds") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise _refusal(folder, str(error)) from error
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        reason = _read_reason(lines).replace(path, str(folder))
        raise _refuse_outside(folder, reason) or _refusal(folder, reason)
    return KustomizeOutput(done.stdout.decode(errors="replace"), above)


def _refuse_outside(folder: Path, reason: str) -> UnreadableInput | None:
    """Return the exception for a file that is outside its kustomization's folder, or None."""
    found = _OUTSIDE.search(reason)
    if found is None:
        return None
    return UnreadableInput(
        "verify-kustomize",
        f"kustomize build failed: {found[1]} is outside the folder of the kustomization {found[2]}",
        file=str(folder),
        hint="Build it with `kustomize build --load-restrictor LoadRestrictionsNone`, and verify "
        "the output.",
    )


def _read_reason(lines: Sequence[str]) -> str:
    """Return the last error, without the time and process of kubectl's log.

    kubectl logs an error of several lines between ``err=<`` and ``>``.
    """
    begins = [number for number, line in enumerate(lines) if line.endswith(_BEGINS)]
    if begins and lines[-1].strip() == ">":
        return " ".join(line.strip() for line in lines[begins[-1] + 1 : -1])
    crashes = [line for line in lines if line.startswith(_CRASHES)]
    if crashes:  # of a program in Go, with the stacks of its goroutines after it
        return crashes[0]
    found = _LOGGED.match(lines[-1])
    return found[1].replace('\\"', '"') if found else lines[-1]


class _Folder(NamedTuple):
    """A folder of a kustomization, and whether what it builds configures plugins."""

    path: Path
    has_plugins: bool = False


def _refuse_remote(top: Path) -> None:
    """Raise UnreadableInput if kustomize would treat a name as a remote address.

    Follows every folder and plugin configuration that a kustomization names.  Also refuses
    kustomizations that would build one another so often that kustomize does not end in time.
    """
    # Not recursive, because a chain of folders can be longer than Python's stack.
    seen, waiting = {_Folder(top.resolve())}, [_Folder(top)]
    edges: dict[Path, list[Path]] = {}
    while waiting:
        folder = waiting.pop()
        for file in (folder.path / name for name in KUSTOMIZATION_FILES):
            if not file.is_file():
                _refuse_special(file, file)
                continue
            for below in _check_kustomization(folder, file):
                resolved = below._replace(path=below.path.resolve())
                edges.setdefault(folder.path.resolve(), []).append(resolved.path)
                if resolved not in seen:
                    seen.add(resolved)
                    # Resolved, because otherwise each link of a chain would lengthen the path, up
                    # to the operating system's limit.
                    path = resolved.path
                    shown = path if top.is_absolute() else Path(os.path.relpath(path))
                    waiting.append(resolved._replace(path=shown))
    if _count_builds(top.resolve(), edges) > _MOST_BUILDS:
        reason = f"its parts name one another, and would be built more than {_MOST_BUILDS} times"
        raise _refusal(top, reason)


def _count_builds(top: Path, edges: Mapping[Path, Sequence[Path]]) -> int:
    """Return how many kustomizations kustomize builds: one again for each that names it.

    Cycles, which kustomize refuses, add nothing.
    """
    counts: dict[Path, int] = {}
    waiting = [top]
    while waiting:
        folder = waiting[-1]
        below = edges.get(folder, ())
        if folder not in counts:
            counts[folder] = 0  # a kustomization that names this one meanwhile closes a cycle
            waiting += [each for each in below if each not in counts]
        else:
            waiting.pop()
            counts[folder] = 1 + sum(counts[each] for each in below)
    return counts[top]


def _check_kustomization(folder: _Folder, file: Path) -> Iterator[_Folder]:
    """Yield the folders that a kustomization names; raise UnreadableInput for addresses."""
    for document in _read_documents(file):
        for text in _list_texts(document):
            # Generators name files with or without a key: KEY=PATH.
            for name in {text, text.partition("=")[2]} - {""}:
                _refuse_special(folder.path / name, file)
        named = [(key, str(name)) for key in _FOLLOWED for name in list_of(document, key)]
        paths = [(key, name) for key, name in named if "\n" not in name]  # the others are YAML
        for _, name in paths:
            if _REPOSITORY.search(name) or "://" in name:
                raise _remote(name, file)
            # kustomize clones what is neither a file nor a folder.
            if not _exists(folder.path / name):
                raise _missing(name, file)
        for address in _addresses(document):
            raise _remote(address, file)
        for name in _list_patch_files(document):
            if not _exists(folder.path / name):
                raise _missing(name, file)
        for text in _list_texts(document):
            _refuse_unreadable(folder.path / text)
        if folder.has_plugins:
            _refuse_changes(document, file)
        for key, name in named:
            if folder.has_plugins or key in _PLUGINS:
                _refuse_plugin(folder.path, name, file)
        yield from (
            _Folder(folder.path / name, folder.has_plugins or key in _PLUGINS)
            for key, name in paths
            if (folder.path / name).is_dir()
        )


def _refuse_changes(document: Mapping[Any, Any], file: Path) -> None:
    """Raise UnreadableInput if a kustomization changes the configurations of plugins.

    kustomize runs the result, in which patches and replacements may have put addresses together.
    """
    changes = sorted(document.keys() - _UNCHANGED)
    if changes:
        raise UnreadableInput(
            "verify-remote",
            f"{changes[0]} may add addresses to plugins, and nothing is downloaded",
            file=str(file),
            hint=f"List the plugins' files in it only.  {_HINT}",
        )


def _list_patch_files(document: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the files of patches that a kustomization names; other patches are YAML themselves."""
    for key in _PATCHES:
        for entry in list_of(document, key):
            name = entry if isinstance(entry, str) else text_of(entry, "path")
            if name and "\n" not in name and not name.startswith("{"):
                yield name


def _refuse_special(path: Path, file: Path) -> None:
    """Raise UnreadableInput for a pipe or a device, which kustomize would wait for.

    ``file`` is the kustomization that names it.
    """
    if os.path.lexists(path) and path.exists() and not _exists(path):
        raise UnreadableInput(
            "verify-kustomize",
            f"{path.name} is not a regular file",
            file=str(file),
            hint=_HINT,
        )


def _refuse_unreadable(path: Path) -> None:
    """Raise UnreadableInput for a file whose aliases contain themselves or expand to too much.

    kustomize would use all memory for minutes.
    """
    if not (_exists(path) and path.is_file()):
        return
    try:
        text = read_regular_text(path)
    except (OSError, UnicodeDecodeError):
        return  # kustomize reports it
    # Most files have no alias, and parsing is the greater part of the work.
    if _ALIAS.search(text) and _ANCHOR.search(text):
        for found in parse_manifests(text, str(path))[1]:
            raise _refusal(path, found.message)


def _list_texts(value: Any) -> Iterator[str]:
    """Yield the strings of a kustomization that may be paths."""
    if isinstance(value, str):
        if "\n" not in value and "\0" not in value and len(value) <= _LONGEST_PATH:
            yield value
    elif isinstance(value, dict | list):
        for below in value.values() if isinstance(value, dict) else value:
            yield from _list_texts(below)


def _exists(path: Path) -> bool:
    """Return whether a path is a file or a folder; kustomize would wait for a pipe's content."""
    try:
        return path.is_file() or path.is_dir()
    except OSError:  # too long for the operating system
        return False


def _refuse_plugin(folder: Path, plugin: str, file: Path) -> None:
    """Raise UnreadableInput if a plugin configuration, in a file or inline, contains an address.

    ``file`` is the kustomization that names ``plugin``, and ``folder`` its folder.
    """
    if "\n" in plugin:
        documents = [each.document for each in parse_manifests(plugin, str(file))[0]]
    elif _exists(folder / plugin) and (folder / plugin).is_file():
        file = folder / plugin
        documents = _read_documents(file)
    else:
        return
    for document in documents:
        for address in _addresses(document):
            raise _remote(address, file)


def _read_documents(file: Path) -> list[Mapping[Any, Any]]:
    manifests, findings = parse_manifests(read_document(file), str(file))
    if findings:  # kustomize may read what cannot be checked here
        raise _refusal(file, findings[0].message)
    # For kustomize, `Resources` is the same as `resources`.
    return [{str(key).lower(): each.document[key] for key in each.document} for each in manifests]


def _addresses(value: Any) -> Iterator[str]:
    """Yield the strings that kustomize would treat as addresses, wherever it expects a path."""
    if isinstance(value, str):
        if "://" in value and "\n" not in value.strip():
            yield value
    elif isinstance(value, dict):
        for key, below in value.items():
            if str(key).lower() not in _VALUES:
                yield from _addresses(below)
    elif isinstance(value, list):
        for below in value:
            yield from _addresses(below)


def _remote(address: str, file: Path) -> UnreadableInput:
    return UnreadableInput(
        "verify-remote",
        f"{address} is outside this tree, and nothing is downloaded",
        file=str(file),
        hint=_HINT,
    )


def _missing(name: str, file: Path) -> UnreadableInput:
    return UnreadableInput(
        "verify-remote",
        f"{name} does not exist in this tree, and nothing is downloaded",
        file=str(file),
        hint=f"Generate it first if the build generates it.  {_HINT}",
    )


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _refusal(folder: Path, reason: str) -> UnreadableInput:
    return UnreadableInput(
        "verify-kustomize", f"kustomize build failed: {reason}", file=str(folder), hint=_HINT
    )
