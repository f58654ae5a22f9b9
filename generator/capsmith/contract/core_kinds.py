"""Schemas of kinds, from ``schemas/core``.

``kinds.json`` has the specs of core's and kubeadm's kinds, ``kubernetes.json`` the types of the
fields of Kubernetes' own kinds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources.abc import Traversable
from typing import Any

from capsmith.contract.reading import make_error

CoreKinds = Mapping[str, Mapping[str, Any]]
"""OpenAPI schemas of specs, by API version, such as ``cluster.x-k8s.io/v1beta2``, and kind."""
KubernetesKinds = Mapping[str, Mapping[str, Any]]
"""Types of the fields of objects, by API version, such as ``apps/v1``, and kind."""

_SHARED = "$shared"


def load_core_kinds(reader: Traversable) -> CoreKinds:
    """Load the schemas of core and kubeadm from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data.
    """
    return _load(reader, "kinds.json")


def load_kubernetes_kinds(reader: Traversable) -> KubernetesKinds:
    """Load the types of Kubernetes' kinds from the schemas folder ``reader``.

    Raises UnreadableInput for invalid data.
    """
    return _load(reader, "kubernetes.json")


def _load(reader: Traversable, name: str) -> Mapping[str, Mapping[str, Any]]:
    file = reader / "core" / name
    try:
        return _parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise make_error(str(file), f"invalid data: {error}") from error


# Each contract version loads them, and they are the same for all.
@lru_cache(2)
def _parse(text: str) -> Mapping[str, Mapping[str, Any]]:
    data = json.loads(text)
    kinds: Mapping[str, Mapping[str, Any]] = _Resolver(data["shared"]).resolve(data["kinds"])
    return kinds


class _Resolver:
    """Replaces references to shared parts by the parts, which stay one object each."""

    def __init__(self, shared: list[Any]) -> None:
        self._shared = shared
        self._resolved: dict[int, Any] = {}

    def resolve(self, part: Any) -> Any:
        """Return a part of the data without references."""
        if isinstance(part, list):
            return [self.resolve(each) for each in part]
        if not isinstance(part, dict):
            return part
        if _SHARED not in part:
            return {key: self.resolve(value) for key, value in part.items()}
        number = part[_SHARED]
        if number not in self._resolved:
            self._resolved[number] = self.resolve(self._shared[number])
        return self._resolved[number]
