"""Texts and values of CRDs as provider.yaml can hold them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from capsmith.yamldoc.quote import UNPRINTABLE

_INT64 = range(-(2**63), 2**63)

LONGEST = 4000
"""Longest description, in characters."""


def text(written: str) -> str:
    """Return a description without what clusterctl would replace, and cut to its greatest length.

    clusterctl reads ``${X}`` as a variable, and makes one dollar of two.
    """
    lines = [line.expandtabs(2).rstrip() for line in written.strip().split("\n")]
    found = UNPRINTABLE.sub("", "\n".join(lines))
    while "$$" in found:
        found = found.replace("$$", "$")
    found = found.replace("${", "$(")
    return found if len(found) <= LONGEST else found[: LONGEST - 1].rstrip() + "…"


def plain_data(value: Any) -> Any:
    """Return a copy whose keys are texts and whose values can be written.

    YAML reads a plain 2030-01-31 as a date, the API server as a text.  Numbers that no field can
    hold become texts, which the checks refuse.
    """
    if isinstance(value, Mapping):
        return {UNPRINTABLE.sub("", str(key)): plain_data(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(each) for each in value]
    if isinstance(value, str):
        return UNPRINTABLE.sub("", value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if value in _INT64 else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else UNPRINTABLE.sub("", str(value))
