"""One run at a time in a folder; OSError becomes a DiskError finding."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from capsmith.errors import DiskError, Refused


@contextlib.contextmanager
def hold_folder(folder: Path, *, writes: bool = True) -> Iterator[None]:
    """Keep other runs of capsmith out of ``folder``; the system releases it if this run dies.

    Runs that do not write may be at work together.  A folder that is not there yet is not held:
    it appears whole or not at all.  Raises Refused when another run has it.
    """
    descriptor = _opened(folder)
    if descriptor is None:
        yield
        return
    try:
        if not _locked(descriptor, writes):
            raise Refused(
                "output-busy",
                "another run of capsmith is using this folder",
                file=str(folder),
                hint="Wait for it to finish, and run this again.",
            )
        yield
    finally:
        os.close(descriptor)


def is_abandoned(folder: Path) -> bool:
    """Return whether no run holds ``folder``."""
    try:
        with hold_folder(folder):
            return True
    except Refused:
        return False


@contextlib.contextmanager
def convert_disk_errors(folder: Path) -> Iterator[None]:
    """Convert OSError into a DiskError that names the file, or else ``folder``."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            "output-unwritable",
            f"cannot be used: {error.strerror or error}",
            # Of a rename the second name is the file of the repository, the first a staged copy.
            file=str(error.filename2 or error.filename or folder),
            hint="Free space or correct permissions, and run this again; it continues.",
        ) from error


def _opened(folder: Path) -> int | None:
    try:
        return os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        return None


def _locked(descriptor: int, writes: bool) -> bool:
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        how = fcntl.LOCK_EX if writes else fcntl.LOCK_SH
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # The file system has no locks.
        return True
    return True
