"""Read one input file of the user, which is not yet trusted."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from capsmith.errors import UnreadableInput

MAX_BYTES = 4 * 1024 * 1024
_NOTHING_SPECIAL = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def read_document(path: Path, limit: int = MAX_BYTES) -> str:
    """Return the text of a UTF-8 file of at most ``limit`` bytes, without a byte order mark.

    Raises UnreadableInput (``input-missing``, ``input-symlink``, ``input-not-a-file``,
    ``input-unreadable``, ``input-too-large``, ``input-not-text``).  The size is looked at before
    anything is read, and a pipe or device is never waited for.
    """
    data = _bytes(path, limit)
    if len(data) > limit:
        raise _too_large(path, limit)
    try:
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


def _bytes(path: Path, limit: int) -> bytes:
    try:
        if path.is_symlink():
            raise UnreadableInput(
                "input-symlink",
                "a symbolic link",
                file=str(path),
                hint="Specify the file itself.",
            )
        descriptor = os.open(path, _NOTHING_SPECIAL)
    except FileNotFoundError as error:
        hint = "Check the path, or run `capsmith new` to write a first provider.yaml."
        raise UnreadableInput("input-missing", "no such file", file=str(path), hint=hint) from error
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    try:
        _check_kind(path, os.fstat(descriptor), limit)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
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
