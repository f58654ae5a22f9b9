"""The interface of the status writers of bootstrap configurations."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Protocol

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.model import Object


class BootstrapStatusWriter(Protocol):
    """Give the status of configurations the shape of one contract version.

    It never has terminal failures: core panics on those of a pool's configuration (MP-13).
    """

    @property
    def contract(self) -> str:
        """``v1beta1`` or ``v1beta2``."""
        ...

    def created(self, obj: Object) -> bool:
        """Return whether the status says that the data are created (BC-01 to BC-04)."""
        ...

    def created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status of an object with data in a Secret; ``extra`` is its own fields."""
        ...


def data_secret_name(obj: Object) -> str:
    """Return ``status.dataSecretName``, the same in both contracts (BC-01, BC-02), or ""."""
    return metadata.text(obj, "status", "dataSecretName")
