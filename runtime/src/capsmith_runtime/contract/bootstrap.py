"""Names and values of the contract for bootstrap configurations and their machines."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

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


CERTIFICATES_EXPIRY_ANNOTATION: Final = "machine.cluster.x-k8s.io/certificates-expiry"
"""When the certificates of a control plane machine expire, in RFC 3339 (BC-16)."""
UPDATE_IN_PROGRESS_ANNOTATION: Final = (
    "in-place-updates.internal.cluster.x-k8s.io/update-in-progress"
)

REASON_WAITING_FOR_CONTROL_PLANE: Final = "WaitingForControlPlaneInitialized"
REASON_WAITING_FOR_ENDPOINT: Final = "WaitingForControlPlaneEndpoint"
REASON_WAITING_FOR_CERTIFICATES: Final = "WaitingForCertificates"
REASON_DATA_SECRET_NAME_TAKEN: Final = "DataSecretNameTaken"

TaintEffect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that a Node is registered with."""

    key: str
    """Key of the taint, such as ``node.cluster.x-k8s.io/uninitialized``."""
    effect: TaintEffect
    """``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``."""
    value: str = ""
    """Value of the taint; optional in Kubernetes."""

    def __str__(self) -> str:
        """Return it in the form of the kubelet's ``--register-with-taints``."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


UNINITIALIZED_TAINT: Final = Taint("node.cluster.x-k8s.io/uninitialized", "NoSchedule")
"""Keeps pods away from a worker until core has synced its labels, and then removed it (BC-14)."""


def is_updating_in_place(obj: Object) -> bool:
    """Return whether the machine is being updated in place: its data must not change (BC-15)."""
    return UPDATE_IN_PROGRESS_ANNOTATION in metadata.annotations(obj)
