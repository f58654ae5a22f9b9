"""Move staged files to their places without losing changes that another program saves meanwhile.

Comparing a file and then renaming another file over it leaves a moment in which an editor's
automatic save would be lost.  Therefore, the two files are exchanged in one step and compared
afterwards, when the other program can no longer reach the file under its name.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

from capsmith.workspace.files import digest_file

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""Flag of renameat2(2), supported since Linux 3.15 and glibc 2.28."""
_RENAME_SWAP = 2
"""Flag of renamex_np(2), supported since macOS 10.12."""
_UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV}
)


def replace_unchanged(staged: Path, target: Path, expected: str) -> bool:
    """Move ``staged`` to ``target``; return False if ``target`` has unexpected content.

    ``expected`` is the digest of the content that may be replaced; a missing file may always be
    created.  If this returns False, both files are unchanged.  Afterwards ``staged`` no longer
    exists, or holds the former content of ``target``.  Raises OSError if a file operation fails.

    If the operating system or the file system cannot exchange files, such as NFS, a save between
    the comparison and the rename is still lost: there is no way to detect it.
    """
    if not os.path.lexists(target):
        return _create(staged, target)
    try:
        is_exchanged = _exchange(staged, target)
    except FileNotFoundError:  # the author has removed it since
        return _create(staged, target)
    if not is_exchanged:
        if digest_file(target) != expected:
            return False
        os.replace(staged, target)
        return True
    if digest_file(staged) == expected:
        return True
    _exchange(staged, target)
    return False


def remove_unchanged(target: Path, aside: Path, expected: str) -> bool:
    """Move ``target`` to ``aside``; return False, and keep it, if it differs from ``expected``.

    A missing file counts as removed.  ``aside`` must be on the same file system.  Raises OSError if
    a file operation fails.
    """
    aside.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.rename(aside)
    except FileNotFoundError:
        return True
    if digest_file(aside) == expected:
        return True
    if not _create(aside, target):
        # The other program has written the file again: the newer one is its result.
        aside.unlink(missing_ok=True)
    return False


def _create(staged: Path, target: Path) -> bool:
    """Move a file to a name that must be unused; return whether it was, or has the same content."""
    try:
        # A rename would replace a file that another program creates at this moment.
        os.link(staged, target)
    except FileExistsError:
        return digest_file(target) == digest_file(staged)
    except OSError as error:
        if error.errno not in _UNSUPPORTED | {errno.EMLINK}:
            raise
        os.replace(staged, target)  # a file system without hard links
        return True
    staged.unlink()
    return True


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two files in one step; return False if that is not supported."""
    function = _find_exchange()
    if function is None:
        return False
    sys.audit("os.rename", str(one), str(other), -1, -1)
    if function(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


@functools.cache
def _find_exchange() -> Callable[[bytes, bytes], int] | None:
    if os.name != "posix":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        at, path = ctypes.c_int, ctypes.c_char_p
        exchange = library.renameat2
        exchange.argtypes = (at, path, at, path, ctypes.c_uint)
        return lambda one, other: int(exchange(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE))
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        swap = library.renamex_np
        swap.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint)
        return lambda one, other: int(swap(one, other, _RENAME_SWAP))
    return None
