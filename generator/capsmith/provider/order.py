"""How versions and release series are ordered."""

from __future__ import annotations

import re


def version_order(name: str) -> tuple[int, int, int]:
    """Return the sort key of Kubernetes: GA before beta before alpha, then by number (GEN-03)."""
    major, *stage = re.findall(r"alpha|beta|\d+", name)
    if not stage:
        return 2, int(major), 0
    return int(stage[0] == "beta"), int(major), int(stage[1])


def series_order(series: str) -> tuple[int, int]:
    """Return major and minor of ``v0.1``."""
    major, minor = series.removeprefix("v").split(".")
    return int(major), int(minor)
