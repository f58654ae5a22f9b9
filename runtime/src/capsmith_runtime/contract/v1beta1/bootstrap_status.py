"""The status of bootstrap configurations in contract v1beta1."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.bootstrap_writer import data_secret_name
from capsmith_runtime.contract.model import Object
from capsmith_runtime.contract.status_writer import with_extra


class V1Beta1BootstrapStatus:
    """A :class:`~capsmith_runtime.contract.bootstrap_writer.BootstrapStatusWriter`."""

    contract = "v1beta1"

    def created(self, obj: Object) -> bool:
        """Return whether ``status.ready`` and the name of the Secret are set (BC-02, BC-04)."""
        return metadata.lookup(obj, "status", "ready") is True and bool(data_secret_name(obj))

    def created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ready and the name of the Secret, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret, "ready": True}
        return with_extra(status, extra)
