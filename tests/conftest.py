"""What all tests share."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from hypothesis import settings

# How fast a machine is, is no property of what is tested.
settings.register_profile("capsmith", deadline=None)
settings.load_profile("capsmith")

_NOBODY = 65534


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions bind as they bind people: root, who may do everything, becomes nobody.

    For files only, and in this thread only: threads of other fixtures go on as they were, which
    ``seteuid`` would not let them, since it changes the whole process.
    """
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None)
    libc.setfsuid(_NOBODY)
    try:
        yield
    finally:
        libc.setfsuid(0)
