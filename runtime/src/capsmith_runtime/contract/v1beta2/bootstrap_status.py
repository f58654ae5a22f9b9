"""The status of bootstrap configurations in contract v1beta2."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.bootstrap_writer import data_secret_name
from capsmith_runtime.contract.model import Object
from capsmith_runtime.contract.status_writer import READY_FIELD, with_extra


class V1Beta2BootstrapStatus:
    """A :class:`~capsmith_runtime.contract.bootstrap_writer.BootstrapStatusWriter`."""

    contract = "v1beta2"

    def created(self, obj: Object) -> bool:
        """Return whether ``dataSecretCreated`` and the Secret's name are set (BC-01, BC-03)."""
        created = metadata.lookup(obj, "status", "initialization", "dataSecretCreated")
        return created is True and bool(data_secret_name(obj))

    def created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with the flag and the name of the Secret, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret}
        flags = metadata.mapping(status, "initialization")
        status["initialization"] = {**flags, "dataSecretCreated": True}
        if READY_FIELD in features:
            status["ready"] = True
        return with_extra(status, extra)
