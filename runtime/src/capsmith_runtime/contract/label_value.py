"""Names as label values, formatted like Cluster API does."""

from __future__ import annotations

import base64
import re
from typing import Final

_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


def label_value(name: str) -> str:
    """Return the name, or ``hash_<base64>_z`` if it is not a valid label value (MP-08).

    The hash is fnv32a, like core's, so that core finds objects by the label.
    """
    if _VALUE.fullmatch(name):
        return name
    digest = base64.urlsafe_b64encode(_fnv32a(name.encode()).to_bytes(4, "big"))
    return f"hash_{digest.decode().rstrip('=')}_z"


def _fnv32a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = (value ^ byte) * _FNV_PRIME & 0xFFFFFFFF
    return value
