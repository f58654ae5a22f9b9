"""The Secret with bootstrap data: its name, content and ownership (BC-05, BC-06, SEC-04).

What must survive the loss of a status, by ``clusterctl move`` or a crash between two writes, is in
the Secret itself (ST-11).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

from capsmith_runtime.contract import external_id, metadata
from capsmith_runtime.contract.bootstrap import CERTIFICATES_EXPIRY_ANNOTATION
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.contract.model import Object

SECRET_TYPE: Final = "cluster.x-k8s.io/secret"
DEFAULT_FORMAT: Final = "cloud-config"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataContent:
    """The content of a Secret with bootstrap data."""

    value: bytes
    format: str
    refresh_at: str = ""
    """When to generate the data of a pool again, in RFC 3339; empty for never (MP-19)."""
    inputs: str = ""
    """Digest of the inputs of the data of a pool; empty for a Machine."""
    certificates_expiry: str = ""
    """In RFC 3339; empty when the reconciler did not return it (BC-16)."""
    external_id: str = ""
    """The external id of the configuration; empty in Secrets of capsmith 0.1."""


class Ownership(Enum):
    """The relation between a configuration and a Secret of its name."""

    OURS = auto()
    UNOWNED = auto()
    """It has no controller, but the right type and cluster."""
    FORMER = auto()
    """Its owner has the same name and another UID: a former or a restored configuration."""
    FOREIGN = auto()


def name_of(config: Object) -> str:
    """Return the name of the Secret, which follows from the configuration alone (BC-05)."""
    return metadata.name(config)


def manifest(config: Object, cluster: str, content: DataContent) -> dict[str, Any]:
    """Return the Secret of a configuration (BC-06)."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "name": name_of(config),
            "namespace": metadata.namespace(config),
            "labels": {CLUSTER_NAME_LABEL: cluster},
            "annotations": {k: v for k, v in annotations_of(config, content).items() if v},
            "ownerReferences": [controller_reference(config)],
        },
        "data": encoded(content),
    }


def encoded(content: DataContent) -> dict[str, str]:
    """Return the ``data`` of the Secret."""
    return {
        "value": base64.b64encode(content.value).decode(),
        "format": base64.b64encode(content.format.encode()).decode(),
    }


def annotations_of(config: Object, content: DataContent) -> dict[str, str | None]:
    """Return the annotations of the Secret; None for those that it must not have."""
    group = _group(config)
    return {
        f"{group}/refresh-at": content.refresh_at or None,
        f"{group}/inputs": content.inputs or None,
        external_id.annotation(group): content.external_id or None,
        CERTIFICATES_EXPIRY_ANNOTATION: content.certificates_expiry or None,
    }


def read(secret: Object, config: Object) -> DataContent:
    """Return the content of the Secret of a configuration."""
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


def ownership(secret: Object, config: Object, cluster: str) -> Ownership:
    """Return the relation between a configuration and a Secret of its name."""
    if secret.get("type") != SECRET_TYPE or "value" not in metadata.mapping(secret, "data"):
        return Ownership.FOREIGN
    owners = metadata.items(secret, "metadata", "ownerReferences")
    controller = next((owner for owner in owners if owner.get("controller")), None)
    if controller is None:
        same_cluster = metadata.labels(secret).get(CLUSTER_NAME_LABEL) == cluster
        return Ownership.UNOWNED if same_cluster else Ownership.FOREIGN
    if not _refers_to(controller, config):
        return Ownership.FOREIGN
    same_uid = controller.get("uid") == metadata.uid(config)
    return Ownership.OURS if same_uid else Ownership.FORMER


def owners_with(secret: Object, config: Object) -> list[dict[str, Any]]:
    """Return the owner references with that of the configuration, replacing a former one."""
    owners = metadata.items(secret, "metadata", "ownerReferences")
    kept = [dict(owner) for owner in owners if not _refers_to(owner, config)]
    return [*kept, controller_reference(config)]


def controller_reference(config: Object) -> dict[str, Any]:
    """Return the reference that makes a configuration the controller (BC-06, SM-07)."""
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
