"""Read files whose paths others chose, without waiting for a pipe or a device.

Opening a pipe that no program writes to, or reading from a terminal, would wait forever.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

MAX_BYTES = 16 * 1024 * 1024
_PART = 1024 * 1024
_AT_ONCE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class NotRegularError(OSError):
    """Raised for a pipe, a device, a socket or a folder instead of a file."""


def read_regular(path: Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file, but never more than one byte above ``limit``.

    Follows symbolic links, as for the files of a mounted Secret.  Raises OSError if the file cannot
    be read (:class:`NotRegularError` if it is none), and ValueError for a path with null bytes.
    """
    descriptor = os.open(path, _AT_ONCE)
    try:
        # Checked after opening, because the path could change in between.
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegularError(errno.EINVAL, "not a regular file", str(path))
        return _read(descriptor, path, limit)
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: Path, limit: int) -> bytes:
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        content = bytearray()
        # In parts, because a read of a size allocates as much memory, whatever the file has.
        while part := file.read(min(_PART, limit + 1 - len(content))):
            content += part
    if part is None:  # a file such as /proc/kmsg, in which there is nothing to read at present
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN), str(path))
    return bytes(content)


def read_regular_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Return the content of a regular UTF-8 file.

    Raises the errors of :func:`read_regular`, OSError for a file that is larger than ``limit``, and
    UnicodeDecodeError.
    """
    content = read_regular(path, limit)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"more than {limit} bytes", str(path))
    return content.decode()
