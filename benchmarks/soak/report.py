"""Figures with their limits, as a table or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.timing import table


@dataclass(frozen=True)
class Figure:
    """One measured value, with at most one limit that it must not exceed."""

    name: str
    value: float
    unit: str = ""
    limit: float | None = None
    note: str = ""

    @property
    def is_exceeded(self) -> bool:
        return self.limit is not None and self.value > self.limit

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return ""
        return "exceeded" if self.is_exceeded else "ok"


def print_figures(figures: Sequence[Figure], output: str, title: str) -> int:
    """Print all figures as ``text`` or ``json``; return 1 if a limit is exceeded, else 0."""
    if output == "json":
        rows = [{**vars(each), "verdict": each.verdict} for each in figures]
        sys.stdout.write(json.dumps({"title": title, "figures": rows}, indent=2) + "\n")
    else:
        head = [title, "value", "limit", "verdict", ""]
        table([head, *(_row(each) for each in figures)])
    return int(any(each.is_exceeded for each in figures))


def _row(figure: Figure) -> list[str]:
    unit = f" {figure.unit}" if figure.unit else ""
    limit = "" if figure.limit is None else f"{figure.limit:g}{unit}"
    return [figure.name, f"{round(figure.value, 2):g}{unit}", limit, figure.verdict, figure.note]
