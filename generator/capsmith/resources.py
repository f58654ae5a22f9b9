"""Where the data of capsmith are: in the wheel (``capsmith/_data``) or in the checkout.

The only module that knows; everything else is given a folder or a text.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_PACKAGE = "capsmith"


def blueprints() -> Traversable:
    """The folder of the blueprints."""
    return _folder("blueprints")


def schemas() -> Traversable:
    """The folder of the contract data and the JSON Schema of provider.yaml."""
    return _folder("schemas")


@cache
def _folder(name: str) -> Traversable:
    shipped = files(_PACKAGE) / "_data" / name
    if shipped.is_dir():
        return shipped
    # A checkout, or an editable install of one: generator/capsmith/resources.py.
    return Path(__file__).parents[2] / name
