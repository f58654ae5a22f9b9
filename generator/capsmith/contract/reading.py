"""Checked access to one mapping of contract data: what is missing, odd or left over is an error.

The data ship with capsmith, so an error here is capsmith's own, or that of whoever edited them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import yaml

from capsmith.errors import UnreadableInput

T = TypeVar("T")

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def broken(file: str, message: str) -> UnreadableInput:
    """The error for contract data that are not what they must be."""
    return UnreadableInput(
        "contract-data", message, file=file, hint="Reinstall capsmith, or undo the edit."
    )


def parse(text: str, file: str) -> Any:
    """YAML text as plain data.

    Raises UnreadableInput when it is not YAML.
    """
    try:
        return yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        raise broken(file, f"not YAML: {error}") from error


class Entry:
    """A mapping whose keys are taken one by one; :meth:`close` refuses what nobody took."""

    def __init__(self, data: Any, file: str, name: str = "") -> None:
        self.file = file
        self.name = name
        if not isinstance(data, Mapping):
            raise self.error("is not a mapping")
        self._left = dict(data)

    def error(self, message: str) -> UnreadableInput:
        """An error that says where."""
        return broken(self.file, f"{self.name or 'the file'} {message}")

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """The value of ``key``; without a default it has to be there."""
        if key not in self._left:
            if default is None:
                raise self.error(f"has no {key!r}")
            return default
        value = self._left.pop(key)
        if not isinstance(value, kind):
            raise self.error(f"has {value!r} for {key!r}, which is no {kind.__name__}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings."""
        values = self.take(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.error(f"has other things than text in {key!r}")
        return tuple(values)

    def null(self, key: str) -> bool:
        """Whether ``key`` is there and null; if so it is taken."""
        if key in self._left and self._left[key] is None:
            del self._left[key]
            return True
        return False

    def has(self, key: str) -> bool:
        """Whether ``key`` is there and not yet taken."""
        return key in self._left

    def keys(self) -> tuple[str, ...]:
        """The keys not yet taken."""
        return tuple(self._left)

    def close(self) -> None:
        """Raises UnreadableInput when keys are left over."""
        if self._left:
            raise self.error(f"has keys that nobody knows: {', '.join(map(str, self._left))}")
