"""Release series of a provider."""

from __future__ import annotations

from typing import NamedTuple

from capsmith.safetext import SeriesName


class Release(NamedTuple):
    """A release series and its contract (CC-05)."""

    series: SeriesName
    major: int
    minor: int
    contract: str
