"""Numbered names of a pool's machines, so that no machine is created twice.

A controller with an outdated cache creates a machine with the same name again, and receives
AlreadyExists.  Numbers only grow: a name never refers to two machines, nor to two Nodes.
"""

from __future__ import annotations

import hashlib
from typing import Final

_LIMIT: Final = 63
"""Nodes have the names of machines, and host names cannot be longer."""
_DIGITS: Final = 7
_BASE: Final = _LIMIT - _DIGITS - 1
_HASH: Final = 8


def machine_name(pool: str, number: int) -> str:
    """Return the name of a machine: ``<pool>-<number>``."""
    return f"{_base(pool)}-{number}"


def number_of(pool: str, name: str) -> int:
    """Return the number in the name of a machine, or -1 for another name."""
    base, _, number = name.rpartition("-")
    return int(number) if base == _base(pool) and number.isdecimal() else -1


def _base(pool: str) -> str:
    if len(pool) <= _BASE:
        return pool
    digest = hashlib.sha256(pool.encode()).hexdigest()[:_HASH]
    return f"{pool[: _BASE - _HASH - 1].rstrip('.-')}-{digest}"
