"""Objects of Kubernetes that the API server takes, and changes of them that it refuses or takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.core_objects import JSON, Mistake

_FILE = Path(__file__).parent / "built_in_objects.yaml"


@cache
def _read() -> Any:
    return yaml.safe_load(_FILE.read_text(encoding="utf-8"))


def build_objects() -> dict[str, JSON]:
    """Return an object of each kind, by its kind."""
    objects: dict[str, JSON] = _read()["objects"]
    return objects


def _list(key: str) -> tuple[Mistake, ...]:
    return tuple(
        Mistake(
            kind, tuple(int(step) if step.isdigit() else step for step in path.split(".")), value
        )
        for kind, path, value in _read()[key]
    )


MISTAKES = _list("refused")
"""What the rule on objects of Kubernetes finds."""
ACCEPTED = _list("accepted")
"""Changes of objects that the API server takes."""
