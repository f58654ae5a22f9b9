"""Lock a folder against other runs, and convert OSError to DiskError.

The lock is an advisory flock on the folder itself, which the kernel releases with the last
descriptor.  A killed process therefore leaves no lock file behind, and none can be committed by
accident.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from capsmith.errors import DiskError, Refused


@contextlib.contextmanager
def hold_folder(folder: Path, *, writes: bool = True) -> Iterator[None]:
    """Return a context manager that locks ``folder`` against other runs of capsmith.

    Runs that only read can share the folder.  The lock is released if this process dies.  Does not
    wait: raises Refused (``output-busy``) if another run has the lock.  A folder that does not
    exist is not locked, because it appears completely or not at all.  Has no effect on Windows or
    on a file system without locks.
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
    """Return whether no run holds ``folder``, which means that its creator was killed."""
    # The answer is a snapshot: callers must make sure that no run uses the folder again.
    try:
        with hold_folder(folder):
            return True
    except Refused:
        return False


@contextlib.contextmanager
def convert_disk_errors(folder: Path) -> Iterator[None]:
    """Return a context manager that re-raises any OSError as a DiskError.

    The error names the affected file, or ``folder`` if the file is unknown.
    """
    try:
        yield
    except OSError as error:
        hint = "Free space or correct permissions, and run this again; it continues."
        raise make_disk_error(error, folder, hint) from error


def make_disk_error(error: OSError, folder: Path, hint: str) -> DiskError:
    """Create, but do not raise, the exception for a failed operation on a file or ``folder``."""
    return DiskError(
        "output-unwritable",
        f"cannot be used: {error.strerror or error}",
        # For a rename, the second name is the repository's file, and the first is a staged copy.
        file=str(error.filename2 or error.filename or folder),
        hint=hint,
    )


def _opened(folder: Path) -> int | None:
    try:
        # Opened for reading, because a folder cannot be opened for writing, and flock does not need
        # it.
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
    except OSError:
        # The file system has no locks.  Refusing every run would make capsmith useless on it.
        return True
    return True
