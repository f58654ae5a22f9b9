"""Contents of the Secrets of a cluster: new ones, and the part of existing ones that is kept.

Private keys are never kept, only whether a Secret can be used, and until when (SEC-01, SEC-03).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from capsmith_runtime.contract import metadata
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.contract.model import Object
from capsmith_runtime.controlplane.secrets.certificates import (
    CertificateError,
    KeyPair,
    Validity,
    check_authority,
    check_signing_keys,
    check_trust,
    new_authority,
    new_signing_keys,
    validity_of,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.workload import kubeconfig

SECRET_TYPE: Final = "cluster.x-k8s.io/secret"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
EXTERNAL_ETCD: Final = "apiserver-etcd-client"
"""Suffix of the Secret that users create for an external etcd."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a key pair that every cluster has."""

    suffix: str
    common_name: str
    """Common name of the authority; empty for keys without a certificate."""

    def secret_name(self, cluster: str) -> str:
        """Return the name of the Secret that holds it."""
        return f"{cluster}-{self.suffix}"


AUTHORITY: Final = Purpose("ca", "kubernetes")
ETCD: Final = Purpose("etcd", "etcd-ca")
PURPOSES: Final = (
    AUTHORITY,
    ETCD,
    Purpose("proxy", "front-proxy-ca"),
    Purpose("sa", ""),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPairContent:
    """A key pair without its private key."""

    certificate: bytes = b""
    """Certificate of an authority; empty for other keys."""
    expiry: datetime | None = None
    fault: str = ""
    """Why it cannot be used; empty when it can."""
    fault_without_key: str = ""
    """Why it cannot be used even where its private key is not needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigContent:
    """A kubeconfig without its credentials."""

    server: str = ""
    authority: bytes = b""
    certificate: bytes = b""
    """Certificate of the client; empty if it has a token."""
    validity: Validity | None = None
    digest: str = ""
    fault: str = ""
    """Why it cannot be used; empty when it can."""


def cluster_of(key: NamespacedName) -> NamespacedName | None:
    """Return the cluster whose Secret has that name; None for any other Secret."""
    name, _, suffix = key.name.rpartition("-")
    known = {purpose.suffix for purpose in PURPOSES} | {"kubeconfig"}
    return NamespacedName(key.namespace, name) if name and suffix in known else None


def new_key_pair(purpose: Purpose, now: datetime) -> KeyPair:
    """Generate keys for a purpose."""
    return new_authority(purpose.common_name, now) if purpose.common_name else new_signing_keys()


def new_secret(
    name: str, cluster: NamespacedName, owner: Object, content: Mapping[str, bytes]
) -> dict[str, Any]:
    """Return a managed Secret (SEC-01, SEC-03)."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "namespace": cluster.namespace,
            "name": name,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [owner_reference(owner)],
        },
        "data": encode(content),
    }


def owner_reference(owner: Object) -> dict[str, Any]:
    """Return a reference to the control plane as controller (SM-07)."""
    return {
        "apiVersion": metadata.text(owner, "apiVersion"),
        "kind": metadata.text(owner, "kind"),
        "name": metadata.name(owner),
        "uid": metadata.uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def adoption_patch(secret: Object, cluster: str, owner: Object) -> dict[str, Any]:
    """Return the metadata that a managed Secret lacks; empty if it has them.

    Replaces an owner of the same kind, which no longer exists; another owner is kept.
    """
    patch: dict[str, Any] = {}
    if metadata.labels(secret).get(CLUSTER_NAME_LABEL) != cluster:
        patch["labels"] = {CLUSTER_NAME_LABEL: cluster}
    own = owner_reference(owner)
    references = metadata.items(secret, "metadata", "ownerReferences")
    others = [each for each in references if not _is_of_kind(each, own)]
    if own not in references and not any(each.get("controller") for each in others):
        patch["ownerReferences"] = [*others, own]
    return patch


def encode(content: Mapping[str, bytes]) -> dict[str, str]:
    """Return the data of a Secret."""
    return {name: base64.b64encode(value).decode() for name, value in content.items()}


def key_pair(secret: Object) -> KeyPair:
    """Return the keys in a Secret; a missing one is empty.

    Raises CertificateError for invalid base64.
    """
    return KeyPair(_decoded(secret, CERTIFICATE), _decoded(secret, KEY))


def authority_content(secret: Object) -> KeyPairContent:
    """Check a certificate authority."""
    try:
        pair = key_pair(secret)
        validity = validity_of(pair.certificate)
        check_trust(pair.certificate)
    except CertificateError as error:
        return KeyPairContent(fault=str(error), fault_without_key=str(error))
    try:
        check_authority(pair)
    except CertificateError as error:
        fault = f"it has no {KEY}" if not pair.key else str(error)
        return KeyPairContent(certificate=pair.certificate, expiry=validity.end, fault=fault)
    return KeyPairContent(certificate=pair.certificate, expiry=validity.end)


def signing_keys_content(secret: Object) -> KeyPairContent:
    """Check the keys for tokens of ServiceAccounts."""
    try:
        check_signing_keys(key_pair(secret))
    except CertificateError as error:
        return KeyPairContent(fault=str(error), fault_without_key=str(error))
    return KeyPairContent()


def kubeconfig_content(secret: Object) -> KubeconfigContent:
    """Check a kubeconfig."""
    try:
        content = _decoded(secret, kubeconfig.SECRET_KEY)
        if not content:
            return KubeconfigContent(fault=f'it has no key "{kubeconfig.SECRET_KEY}"')
        access = kubeconfig.parse(content)
        validity = validity_of(access.certificate) if access.certificate else None
    except (CertificateError, kubeconfig.KubeconfigError) as error:
        return KubeconfigContent(fault=str(error))
    return KubeconfigContent(
        server=access.server,
        authority=access.authority,
        certificate=access.certificate,
        validity=validity,
        digest=kubeconfig.digest(content),
    )


def _decoded(secret: Object, name: str) -> bytes:
    try:
        return base64.b64decode(metadata.text(secret, "data", name), validate=True)
    except binascii.Error:
        raise CertificateError(f"its {name} is not base64") from None


def _is_of_kind(reference: Object, own: Object) -> bool:
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    own_group = metadata.text(own, "apiVersion").partition("/")[0]
    return (group, reference.get("kind")) == (own_group, own["kind"])
