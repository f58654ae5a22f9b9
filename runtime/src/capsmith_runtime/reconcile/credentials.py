"""Credentials, whose values no message can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Credentials(Mapping[str, str]):
    """Content of the Secret of an identity; its text names the keys and hides the values."""

    __slots__ = ("_values", "identity")

    identity: str
    """Name of the identity; empty if the infrastructure cluster has none."""

    def __init__(self, values: Mapping[str, str] | None = None, identity: str = "") -> None:
        self._values = dict(values or {})
        self.identity = identity

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # Type checkers allow a comparison with a dict only if the class itself has this method.
    def __eq__(self, other: object) -> bool:
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{key}=...' for key in sorted(self._values))})"
