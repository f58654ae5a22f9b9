"""Bootstrap configurations: their status, the Secret with their data, and the init lock.

State that must survive the loss of a status, by ``clusterctl move`` or by a crash between two
writes, is in the Secret itself (ST-11).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Literal, Protocol

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.constants import CLUSTER_KIND, CLUSTER_NAME_LABEL, CORE_GROUP
from capsmith_runtime.contract.core import Cluster
from capsmith_runtime.contract.model import Object
from capsmith_runtime.contract.status_writer import READY_FIELD, set_extra_fields


class BootstrapStatusWriter(Protocol):
    """Writes configurations' status in one contract version's format.

    It never writes terminal failures: core panics if a pool's configuration has them (MP-13).
    """

    @property
    def contract(self) -> str:
        """Return the contract version: ``v1beta1`` or ``v1beta2``."""
        ...

    def is_created(self, obj: Object) -> bool:
        """Return whether the status reports that the bootstrap data exist (BC-01 to BC-04)."""
        ...

    def build_created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status of an object whose data are in the Secret called ``secret``.

        ``extra`` contains status fields that only this kind has.
        """
        ...


def data_secret_name(obj: Object) -> str:
    """Return ``status.dataSecretName`` (in both contract versions), or an empty string if not set.

    See BC-01 and BC-02.
    """
    return metadata.text(obj, "status", "dataSecretName")


CERTIFICATES_EXPIRY_ANNOTATION: Final = "machine.cluster.x-k8s.io/certificates-expiry"
"""Annotation with the expiry time of a control plane machine's certificates, in RFC 3339.

See BC-16.
"""
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
    """A taint with which a Node is registered."""

    key: str
    """Key of the taint, such as ``node.cluster.x-k8s.io/uninitialized``."""
    effect: TaintEffect
    """Effect of the taint: ``NoSchedule``, ``PreferNoSchedule`` or ``NoExecute``."""
    value: str = ""
    """Value of the taint, or an empty string if it has none."""

    def __str__(self) -> str:
        """Return the taint in the format of the kubelet's ``--register-with-taints``."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


UNINITIALIZED_TAINT: Final = Taint("node.cluster.x-k8s.io/uninitialized", "NoSchedule")
"""Taint that keeps pods off a new worker until core has synced its labels.

Core then removes the taint (BC-14).
"""


def is_updating_in_place(obj: Object) -> bool:
    """Return whether the machine is being updated in place.

    If it is, its bootstrap data must not change (BC-15).
    """
    return UPDATE_IN_PROGRESS_ANNOTATION in metadata.annotations(obj)


SECRET_TYPE: Final = "cluster.x-k8s.io/secret"
DEFAULT_FORMAT: Final = "cloud-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataContent:
    """The content of a bootstrap data Secret."""

    value: bytes
    format: str
    refresh_at: str = ""
    """Time at which a pool's data must be regenerated, in RFC 3339, or empty for never (MP-19)."""
    inputs: str = ""
    """Digest of the inputs that a pool's data were generated from, or empty for a Machine."""
    certificates_expiry: str = ""
    """Expiry time of the certificates in RFC 3339.

    It is empty if the reconciler returned none (BC-16).
    """
    external_id: str = ""
    """The configuration's external id; empty in Secrets created by capsmith 0.1."""


class Ownership(Enum):
    """The relation between a configuration and a Secret with the same name."""

    OURS = auto()
    UNOWNED = auto()
    """The Secret has no controller, but it has the right type and cluster."""
    FORMER = auto()
    """The Secret's owner is an earlier configuration with its name, or itself before a restore."""
    FOREIGN = auto()


def data_secret_of(config: Object) -> str:
    """Return the name of a configuration's Secret, which is the configuration's name (BC-05)."""
    return metadata.name(config)


def build_data_secret(config: Object, cluster: str, content: DataContent) -> dict[str, Any]:
    """Return the manifest of the Secret that holds a configuration's data (BC-06)."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "name": data_secret_of(config),
            "namespace": metadata.namespace(config),
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "annotations": {k: v for k, v in data_annotations(config, content).items() if v},
            "ownerReferences": [build_controller_reference(config)],
        },
        "data": encode_data(content),
    }


def encode_data(content: DataContent) -> dict[str, str]:
    """Return ``content`` as the Secret's ``data``, encoded in base64."""
    return {
        "value": base64.b64encode(content.value).decode(),
        "format": base64.b64encode(content.format.encode()).decode(),
    }


def data_annotations(config: Object, content: DataContent) -> dict[str, str | None]:
    """Return the Secret's annotations, with None as the value of those to remove."""
    group = _group(config)
    return {
        f"{group}/refresh-at": content.refresh_at or None,
        f"{group}/inputs": content.inputs or None,
        external_id.annotation(group): content.external_id or None,
        CERTIFICATES_EXPIRY_ANNOTATION: content.certificates_expiry or None,
    }


def read_data_secret(secret: Object, config: Object) -> DataContent:
    """Return the content of a configuration's Secret, decoded from base64.

    Missing keys and annotations are empty, except the format, which has a default.
    """
    data, annotations = metadata.mapping(secret, "data"), metadata.annotations(secret)
    group = _group(config)
    return DataContent(
        value=base64.b64decode(data.get("value", "")),
        format=base64.b64decode(data.get("format", "")).decode(errors="replace") or DEFAULT_FORMAT,
        refresh_at=annotations.get(f"{group}/refresh-at", ""),
        inputs=annotations.get(f"{group}/inputs", ""),
        certificates_expiry=annotations.get(CERTIFICATES_EXPIRY_ANNOTATION, ""),
        external_id=external_id.stored(secret, group) or "",
    )


def find_ownership(secret: Object, config: Object, cluster: str) -> Ownership:
    """Return the relation between a configuration and a Secret with the same name."""
    # Without this key it is one of the cluster's other Secrets, such as certificates, which have
    # the same type.
    if secret.get("type") != SECRET_TYPE or "value" not in metadata.mapping(secret, "data"):
        return Ownership.FOREIGN
    owners = metadata.items(secret, "metadata", "ownerReferences")
    controller = next((owner for owner in owners if owner.get("controller")), None)
    if controller is None:
        # A Secret that lost its owners, for example in a restore, still has its labels.
        same_cluster = metadata.labels(secret).get(CLUSTER_NAME_LABEL) == cluster
        return Ownership.UNOWNED if same_cluster else Ownership.FOREIGN
    if not _refers_to(controller, config):
        return Ownership.FOREIGN
    same_uid = controller.get("uid") == metadata.uid(config)
    return Ownership.OURS if same_uid else Ownership.FORMER


def add_owner(secret: Object, config: Object) -> list[dict[str, Any]]:
    """Return a Secret's owner references, with the configuration added as its controller.

    A reference to an earlier configuration with the same name is replaced.
    """
    owners = metadata.items(secret, "metadata", "ownerReferences")
    kept = [dict(owner) for owner in owners if not _refers_to(owner, config)]
    return [*kept, build_controller_reference(config)]


def build_controller_reference(config: Object) -> dict[str, Any]:
    """Return the reference that makes a configuration its Secret's controller (BC-06, SM-07)."""
    return {
        "apiVersion": config["apiVersion"],
        "kind": config["kind"],
        "name": metadata.name(config),
        "uid": metadata.uid(config),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _refers_to(reference: Object, config: Object) -> bool:
    """Return whether a reference names the configuration, with any UID and API version."""
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    identity = (_group(config), config["kind"], metadata.name(config))
    return (group, reference.get("kind"), reference.get("name")) == identity


def _group(config: Object) -> str:
    return metadata.text(config, "apiVersion").partition("/")[0]


# Name and content match those of the kubeadm bootstrap provider, so that two providers in one
# Cluster exclude each other.
_KEY: Final = "lock-information"


def init_lock_name(cluster: Cluster) -> str:
    """Return the name of the ConfigMap that serves as a Cluster's init lock."""
    return f"{cluster.name}-lock"


def build_init_lock(cluster: Cluster, core_version: str, machine: str) -> dict[str, Any]:
    """Create a Cluster's init lock: a ConfigMap owned by the Cluster and held by ``machine``."""
    owner = {
        "apiVersion": f"{CORE_GROUP}/{core_version}",
        "kind": CLUSTER_KIND,
        "name": cluster.name,
        "uid": cluster.uid,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": init_lock_name(cluster),
            "namespace": cluster.namespace,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner],
        },
        "data": init_lock_data(machine),
    }


def init_lock_data(machine: str) -> dict[str, str]:
    """Return the ``data`` of an init lock that is held by the Machine called ``machine``."""
    return {_KEY: json.dumps({"machineName": machine})}


def init_lock_holder(config_map: Object) -> str | None:
    """Return the name of the lock's Machine, or None if the ConfigMap is not a lock."""
    information = metadata.parse_object(metadata.text(config_map, "data", _KEY)) or {}
    return metadata.text(information, "machineName") or None


class V1Beta1BootstrapStatus:
    """Reads and writes a bootstrap configuration's status in contract v1beta1's format."""

    contract = "v1beta1"

    def is_created(self, obj: Object) -> bool:
        """Return whether ``status.ready`` and the name of the Secret are set (BC-02, BC-04)."""
        return metadata.lookup(obj, "status", "ready") is True and bool(data_secret_name(obj))

    def build_created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ``ready`` and the name of the Secret, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret, "ready": True}
        return set_extra_fields(status, extra)


class V1Beta2BootstrapStatus:
    """Reads and writes a bootstrap configuration's status in contract v1beta2's format."""

    contract = "v1beta2"

    def is_created(self, obj: Object) -> bool:
        """Return whether ``dataSecretCreated`` and the Secret's name are set (BC-01, BC-03)."""
        created = metadata.lookup(obj, "status", "initialization", "dataSecretCreated")
        return created is True and bool(data_secret_name(obj))

    def build_created_status(
        self, obj: Object, secret: str, extra: Mapping[str, Any], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with ``dataSecretCreated`` and the Secret's name, set together."""
        status = {**(obj.get("status") or {}), "dataSecretName": secret}
        flags = metadata.mapping(status, "initialization")
        status["initialization"] = {**flags, "dataSecretCreated": True}
        if READY_FIELD in features:
            status["ready"] = True
        return set_extra_fields(status, extra)


_WRITERS: Final[tuple[BootstrapStatusWriter, ...]] = (
    V1Beta2BootstrapStatus(),
    V1Beta1BootstrapStatus(),
)
BOOTSTRAP_STATUS_WRITERS: Final[Mapping[str, BootstrapStatusWriter]] = {
    writer.contract: writer for writer in _WRITERS
}
"""The BootstrapStatusWriter for each contract version."""
