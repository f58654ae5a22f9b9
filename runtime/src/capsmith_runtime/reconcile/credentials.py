"""Credentials, whose values no message can show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from capsmith_runtime.api.serialization import decode

T = TypeVar("T")


class Credentials(Mapping[str, str]):
    """Content of the Secret of an identity; its text names the keys and hides the values."""

    __slots__ = ("_spec", "_values", "identity", "identity_kind")

    identity: str
    """Name of the identity, or ``namespace/name``; empty if the infrastructure cluster has none."""
    identity_kind: str
    """Kind of the identity; empty if there is none."""

    def __init__(
        self,
        values: Mapping[str, str] | None = None,
        identity: str = "",
        *,
        kind: str = "",
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = dict(values or {})
        self.identity = identity
        self.identity_kind = kind
        self._spec = spec or {}

    def identity_spec(self, cls: type[T]) -> T:
        """Return the spec of the identity as ``cls``, the type of its kind in ``_generated.api``.

        Raises DecodingError if the fields do not fit, such as those of another kind: compare
        ``identity_kind`` first if there are several.
        """
        return decode(cls, self._spec, "identity")

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # Type checkers allow a comparison with a dict only if the class itself has this method.
    def __eq__(self, other: object) -> bool:
        if isinstance(other, Credentials) and self._origin != other._origin:
            return False
        return super().__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def _origin(self) -> tuple[str, str, Mapping[str, Any]]:
        return self.identity_kind, self.identity, self._spec

    def __repr__(self) -> str:
        return f"Credentials({', '.join(f'{key}=...' for key in sorted(self._values))})"


def qualified_identity(credentials: Credentials) -> str:
    """Return kind and name of an identity, which identify it; empty if there is none."""
    return f"{credentials.identity_kind} {credentials.identity}".strip()
