"""What all tests share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

_NOBODY = 65534


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Permissions bind as they bind people: root, who may do everything, becomes nobody."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(_NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
