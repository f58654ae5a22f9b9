"""Read the user's untrusted input, and capsmith's data files.

No function blocks, follows links or reads without a limit: instead of a provider.yaml, a repository
can contain a pipe, a link to ``/dev/zero`` or a file of several gigabytes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from importlib.resources.abc import Traversable
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from capsmith.errors import Refused, UnreadableInput
from capsmith.findings import Finding, Location
from capsmith.safetext import RelativePath
from capsmith.workspace.files import resolve_inside

MAX_BYTES = 4 * 1024 * 1024
_NOTHING_SPECIAL = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read_document(path: Path, limit: int = MAX_BYTES, *, absent: str = "Check the path.") -> str:
    """Return the content of a UTF-8 file of at most ``limit`` bytes, without a byte order mark.

    ``absent`` is the hint if there is no such file.  Raises UnreadableInput (``input-missing``,
    ``input-symlink``, ``input-not-a-file``, ``input-unreadable``, ``input-too-large``,
    ``input-not-text``).  The size is checked before reading, and a pipe or device never blocks.
    """
    data = _bytes(path, limit, absent)
    if len(data) > limit:
        raise _too_large(path, limit)
    try:
        # Editors on Windows write a byte order mark, which YAML parsers would treat as a character.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableInput(
            "input-not-text",
            f"not UTF-8 text: byte 0x{data[error.start]:02x} at offset {error.start}",
            file=str(path),
            line=line,
            hint="Save the file as UTF-8.",
        ) from error
    if text.startswith("\ufeff"):
        raise UnreadableInput(
            "input-not-text",
            "the file has a second byte order mark",
            file=str(path),
            line=1,
            hint="Save the file as UTF-8, without byte order marks.",
        )
    if "\0" in text:
        raise UnreadableInput(
            "input-not-text",
            "this is a binary file: it contains null bytes",
            file=str(path),
            line=text.count("\n", 0, text.index("\0")) + 1,
            hint="Specify the YAML file that describes the provider.",
        )
    return text


def _bytes(path: Path, limit: int, absent: str) -> bytes:
    try:
        # Checked first for a clear message; O_NOFOLLOW below actually prevents following links.
        if path.is_symlink():
            raise UnreadableInput(
                "input-symlink",
                "a symbolic link",
                file=str(path),
                hint="Specify the file itself.",
            )
        # Checked on the descriptor after opening, because the path could change between a check and
        # an open.  O_NONBLOCK lets the open of a pipe return immediately.
        descriptor = os.open(path, _NOTHING_SPECIAL)
    except FileNotFoundError as error:
        raise UnreadableInput(
            "input-missing", "no such file", file=str(path), hint=absent
        ) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        _check_kind(path, os.fstat(descriptor), limit)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # One byte more than allowed, because a file may grow after its size was checked.
            data: bytes | None = file.read(limit + 1)
        if data is None:  # a file such as /proc/kmsg, in which there is nothing to read at present
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return data
    except OSError as error:
        raise _unreadable(path, error) from error
    finally:
        os.close(descriptor)


def _check_kind(path: Path, status: os.stat_result, limit: int) -> None:
    if not stat.S_ISREG(status.st_mode):
        what = "this is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        hint = "Specify a YAML file."
        raise UnreadableInput("input-not-a-file", what, file=str(path), hint=hint)
    if status.st_size > limit:
        raise _too_large(path, limit)


def _too_large(path: Path, limit: int) -> UnreadableInput:
    return UnreadableInput(
        "input-too-large",
        f"more than {limit} bytes",
        file=str(path),
        hint="Check that this is the right file; a provider.yaml has a few hundred lines.",
    )


def _unreadable(path: Path, error: Exception) -> UnreadableInput:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else "not a path"
    return UnreadableInput(
        "input-unreadable",
        f"cannot be read: {reason}",
        file=str(path),
        hint="Check the path and its permissions.",
    )


_ENDS = (".yaml", ".yml")
_SKIPPED = frozenset({"node_modules", "testdata", "third_party", "vendor", "__pycache__"})


class Limit(NamedTuple):
    """The maximum number of files in a folder, and the error to raise if there are more."""

    files: int
    error: str
    hint: str


_TESTS = frozenset({"e2e", "hack", "test", "testdata", "tests"})
"""Names of folders in a source tree whose manifests belong to no release."""


def find_test_files(folder: Path, files: Sequence[Path]) -> dict[Path, frozenset[str]]:
    """Return the files in folders of tests below ``folder``, with the names of these folders.

    Empty if all files are in such folders.
    """
    names = {path: _TESTS.intersection(path.relative_to(folder).parts[:-1]) for path in files}
    found = {path: found for path, found in names.items() if found}
    return found if len(found) < len(names) else {}


def find_chart_templates(found: Iterable[Path], kept: Sequence[Path]) -> list[Path]:
    """Return the files in ``kept`` that are templates of Helm charts in ``found``: no plain YAML.

    Empty if all files are such templates.
    """
    charts = {path.parent for path in found if path.name == "Chart.yaml"}
    templates = [
        path
        for path in kept
        if any(each.name == "templates" and each.parent in charts for each in path.parents)
    ]
    return templates if len(templates) < len(kept) else []


def find_yaml_files(folder: Path, limit: Limit, names: Container[str] = ()) -> Iterator[Path]:
    """Yield the YAML files in ``folder`` and its subfolders, and files with a name in ``names``.

    Each folder's files come first, then its subfolders, both sorted by name.  Symbolic links,
    hidden entries and dependency folders are skipped.  Raises UnreadableInput if there are more
    files than ``limit`` allows, or if a folder or a file's type cannot be read.
    """
    count = 0
    for parent, folders, files in os.walk(folder, onerror=_refuse_folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        for name in sorted(files):
            path = Path(parent, name)
            if name.startswith(".") or not (name.endswith(_ENDS) or name in names):
                continue
            if not _is_regular(path):
                continue
            count += 1
            if count > limit.files:
                message = f"more than {limit.files} files"
                raise UnreadableInput(limit.error, message, file=str(folder), hint=limit.hint)
            yield path


def _refuse_folder(error: OSError) -> None:
    # Otherwise os.walk skips the folder, and the result would say nothing of its files.
    if not isinstance(error, FileNotFoundError):  # removed since its parent was read
        raise _unreadable(Path(error.filename), error) from error


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except FileNotFoundError:  # removed since the folder was read
        return False
    except OSError as error:
        raise _unreadable(path, error) from error


def read_texts(folder: Traversable) -> dict[str, str]:
    """Return the content of every file in ``folder`` and below, by sorted relative POSIX path."""
    return dict(LazyTexts(folder).items())


class LazyTexts(Mapping[str, str]):
    """A folder's files by relative POSIX path, sorted. Each file is read when first used."""

    def __init__(self, folder: Traversable) -> None:
        self._files = dict(sorted(_data_files(folder, ""), key=lambda file: file[0]))
        self._texts: dict[str, str] = {}

    def __getitem__(self, path: str) -> str:
        if path not in self._texts:
            self._texts[path] = self._files[path].read_text(encoding="utf-8")
        return self._texts[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _data_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.name == "__pycache__":
            continue
        path = prefix + entry.name
        if entry.is_dir():
            yield from _data_files(entry, path + "/")
        else:
            yield path, entry


MOST_FILES = 500
MOST_BYTES = 256 * 1024
"""Maximum size of one file in an overlay, in bytes."""
_DEEPEST = 20
_IGNORED = ("README", "LICENSE", "LICENCE", "COPYING", "NOTICE", "CHANGELOG")


def read_overlay(folder: Path) -> tuple[dict[str, str], tuple[Finding, ...]]:
    r"""Return an overlay's files by POSIX path, with findings about files that cannot be read.

    Paths are sorted and line endings are ``\n``.  Hidden files and documents such as README.md at
    the top of the folder are skipped.  Raises UnreadableInput if the folder does not exist. Finding
    ids: ``overlay-path``, ``overlay-too-large`` and the ids of :func:`read_document`.
    """
    _require_folder(folder)
    texts: dict[str, str] = {}
    findings: list[Finding] = []
    paths = _first_paths(folder)
    if len(paths) > MOST_FILES:
        hint = "Keep only the files that must differ from capsmith's."
        message = f"more than {MOST_FILES} files"
        return {}, (Finding("overlay-too-large", message, Location(str(folder)), hint=hint),)
    for path in paths:
        where = str(folder / path)
        try:
            text = read_document(folder / path, MOST_BYTES)
            texts[str(RelativePath(path))] = text.replace("\r\n", "\n")
        except UnreadableInput as error:
            found = error.finding
            findings.append(Finding(found.id, found.message, found.location, hint=_OVERLAY_HINT))
        except ValueError:
            message = (
                "a path in an overlay must be short and contain only letters, digits and ._@+-"
            )
            findings.append(Finding("overlay-path", message, Location(where), hint="Rename it."))
    return dict(sorted(texts.items())), tuple(findings)


def locate_overlay(repository: Path, named: str) -> Path:
    """Return the path to the overlay folder named in provider.yaml.

    Raises UnreadableInput if it is outside ``repository`` or its path contains a symlink.
    """
    try:
        return resolve_inside(repository, named)
    except (Refused, ValueError) as error:
        message = (
            error.finding.message
            if isinstance(error, Refused)
            else "not a path inside the repository"
        )
        raise UnreadableInput(
            "overlay-not-a-folder",
            message,
            file=str(repository / named),
            hint="Set `blueprints` to a folder beside provider.yaml that contains the files.",
        ) from error


_OVERLAY_HINT = "Keep only regular text files of moderate size in an overlay, and no links."


def _require_folder(folder: Path) -> None:
    """Raise UnreadableInput unless ``folder`` is a folder."""
    if folder.is_dir() and not folder.is_symlink():
        return
    what = "a symbolic link" if folder.is_symlink() else "not a folder"
    if not os.path.lexists(folder):
        what = "nothing"
    raise UnreadableInput(
        "overlay-not-a-folder",
        f"blueprints must be in a folder: this is {what}",
        file=str(folder),
        hint="Specify the folder that contains project/, macros/ or manifest.yaml.",
    )


def _first_paths(folder: Path) -> list[str]:
    """Return the paths of the files, at most one more than the limit.

    Raises UnreadableInput for a folder that cannot be read.
    """
    try:
        return list(islice(_overlay_paths(folder, "", 0), MOST_FILES + 1))
    except OSError as error:
        raise UnreadableInput(
            "input-unreadable",
            f"cannot be read: {error.strerror or error}",
            file=str(error.filename or folder),
            hint="Check its permissions.",
        ) from error


def _overlay_paths(folder: Path, prefix: str, depth: int) -> Iterator[str]:
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if not prefix and entry.name.startswith((".", *_IGNORED)):
            continue
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False) and depth < _DEEPEST:
            yield from _overlay_paths(folder / entry.name, path + "/", depth + 1)
        else:
            yield path
