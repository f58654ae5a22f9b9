"""Contents of cluster Secrets: new contents, and the parts of existing ones kept in memory.

Private keys are never kept in memory. What is kept is whether a Secret can be used, and until when
(SEC-01, SEC-03).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.constants import CLUSTER_NAME_LABEL
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.controlplane.secrets.certificates import (
    CertificateError,
    KeyPair,
    Validity,
    check_authority,
    check_signing_keys,
    check_trust,
    create_authority,
    create_signing_keys,
    read_validity,
)
from capsmith_runtime.kube.client import NamespacedName
from capsmith_runtime.reconcile.results import Waiting
from capsmith_runtime.workload import kubeconfig

SECRET_TYPE: Final = "cluster.x-k8s.io/secret"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
EXTERNAL_ETCD: Final = "apiserver-etcd-client"
"""Name suffix of the Secret that users create for an external etcd."""


@dataclass(frozen=True, slots=True)
class Purpose:
    """Purpose of one of a cluster's key pairs, such as its CA."""

    suffix: str
    common_name: str
    """Common name of the CA, or an empty string for keys without a certificate."""

    def secret_name(self, cluster: str) -> str:
        """Return the name of the Secret that holds this key pair."""
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
    """A key pair in a Secret, as kept in memory: without its private key."""

    certificate: bytes = b""
    """Certificate of a CA, or empty for other keys."""
    expiry: datetime | None = None
    fault: str = ""
    """Reason why the key pair cannot be used, or an empty string if it can."""
    fault_without_key: str = ""
    """Reason why even the certificate without its key cannot be used, or empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeconfigContent:
    """A kubeconfig in a Secret, as kept in memory: without its credentials."""

    server: str = ""
    authority: bytes = b""
    certificate: bytes = b""
    """Certificate of the client, or empty if the client has a token."""
    validity: Validity | None = None
    digest: str = ""
    fault: str = ""
    """Reason why the kubeconfig cannot be used, or an empty string if it can."""


def find_cluster(key: NamespacedName) -> NamespacedName | None:
    """Return the cluster that the Secret with this key belongs to, or None for any other Secret."""
    # From the right: names of clusters may contain hyphens, the suffixes do not.
    name, _, suffix = key.name.rpartition("-")
    known = {purpose.suffix for purpose in PURPOSES} | {"kubeconfig"}
    return NamespacedName(key.namespace, name) if name and suffix in known else None


def create_key_pair(purpose: Purpose, now: datetime) -> KeyPair:
    """Generate a CA that is valid from ``now``, or a key pair without a certificate.

    ``purpose`` decides which. Only the ServiceAccount keys have no certificate.
    """
    return (
        create_authority(purpose.common_name, now) if purpose.common_name else create_signing_keys()
    )


def build_secret(
    name: str, cluster: NamespacedName, owner: Object, content: Mapping[str, bytes]
) -> dict[str, Any]:
    """Create the manifest of a managed Secret (SEC-01, SEC-03)."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": SECRET_TYPE,
        "metadata": {
            "namespace": cluster.namespace,
            "name": name,
            "labels": {CLUSTER_NAME_LABEL: cluster.name},
            "ownerReferences": [build_owner_reference(owner)],
        },
        "data": encode(content),
    }


def build_owner_reference(owner: Object) -> dict[str, Any]:
    """Create an owner reference that makes the control plane the controller (SM-07)."""
    return {
        "apiVersion": metadata.text(owner, "apiVersion"),
        "kind": metadata.text(owner, "kind"),
        "name": metadata.name(owner),
        "uid": metadata.uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def build_adoption_patch(
    secret: Object, cluster: str, owner: Object, configurations: Collection[ObjectRef] = ()
) -> dict[str, Any]:
    """Return a patch with the metadata that a managed Secret lacks, or {} if it lacks none.

    Owners of the same kind are former control planes, and are replaced. So are the bootstrap
    configurations in ``configurations``: they own the keys of a cluster that had no control plane,
    and would take them along when their Machine is replaced. No owner is added if another object
    is the controller.
    """
    patch: dict[str, Any] = {}
    # Core and bootstrap providers find the Secret by its label.
    if metadata.labels(secret).get(CLUSTER_NAME_LABEL) != cluster:
        patch["labels"] = {CLUSTER_NAME_LABEL: cluster}
    own = build_owner_reference(owner)
    references = metadata.items(secret, "metadata", "ownerReferences")
    others = [
        each
        for each in references
        if group_and_kind(each) != group_and_kind(own)
        and ObjectRef(*group_and_kind(each), metadata.text(each, "name")) not in configurations
    ]
    # The API server rejects a second controller.
    if own not in references and not any(each.get("controller") for each in others):
        patch["ownerReferences"] = [*others, own]
    return patch


def encode(content: Mapping[str, bytes]) -> dict[str, str]:
    """Return the values encoded in base64, as a Secret's ``data``."""
    return {name: base64.b64encode(value).decode() for name, value in content.items()}


def read_key_pair(secret: Object) -> KeyPair:
    """Return the key pair in a Secret; a missing certificate or key is an empty string.

    Raises CertificateError for invalid base64.
    """
    return KeyPair(_decoded(secret, CERTIFICATE), _decoded(secret, KEY))


def read_authority(secret: Object) -> KeyPairContent:
    """Return the part of a CA's Secret that is kept in memory.

    ``fault`` is set if the Secret cannot be used.
    """
    try:
        pair = read_key_pair(secret)
        validity = read_validity(pair.certificate)
        check_trust(pair.certificate)
    except CertificateError as error:
        return KeyPairContent(fault=str(error), fault_without_key=str(error))
    try:
        # The private key is checked separately: where users sign certificates themselves, only
        # trust is needed.
        check_authority(pair)
    except CertificateError as error:
        fault = f"it has no {KEY}" if not pair.key else str(error)
        return KeyPairContent(certificate=pair.certificate, expiry=validity.end, fault=fault)
    return KeyPairContent(certificate=pair.certificate, expiry=validity.end)


def read_signing_keys(secret: Object) -> KeyPairContent:
    """Return the part of a Secret with signing keys that is kept in memory.

    ``fault`` is set if the Secret cannot be used.
    """
    try:
        check_signing_keys(read_key_pair(secret))
    except CertificateError as error:
        return KeyPairContent(fault=str(error), fault_without_key=str(error))
    return KeyPairContent()


def read_kubeconfig(secret: Object) -> KubeconfigContent:
    """Return the part of a kubeconfig Secret that is kept in memory, without its credentials.

    ``fault`` is set if the kubeconfig cannot be used.
    """
    try:
        content = _decoded(secret, kubeconfig.SECRET_KEY)
        if not content:
            return KubeconfigContent(fault=f'it has no key "{kubeconfig.SECRET_KEY}"')
        access = kubeconfig.parse(content)
        validity = read_validity(access.certificate) if access.certificate else None
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


def group_and_kind(reference: Object) -> tuple[str, str]:
    """Return the API group and kind of an object or a reference."""
    group = metadata.text(reference, "apiVersion").partition("/")[0]
    return group, metadata.text(reference, "kind")


REASON_NOT_USABLE: Final = "CertificatesNotUsable"
EXPIRY_NOTICE: Final = timedelta(days=90)
"""Time before expiry at which certificates that are not renewed automatically are reported."""
_MISSING_SECONDS: Final = 30.0
"""Seconds between two reads of a missing Secret: without its label, the watch does not show it."""


@dataclass(slots=True, kw_only=True)
class SecretReport:
    """Findings about a cluster's Secrets; the same Secrets give the same messages."""

    now: datetime
    faults: list[str] = field(default_factory=list)
    has_missing: bool = False
    """Whether one of the faults is a missing Secret."""
    has_other_owner: bool = False
    """Whether one of the faults is a Secret of another control plane."""
    notes: list[str] = field(default_factory=list)
    renewal: datetime | None = None
    """Time at which the kubeconfig must be renewed, or None if it need not be."""

    @property
    def waiting(self) -> Waiting | None:
        """Return a Waiting that names the Secrets to repair, or None if all are usable."""
        if not self.faults:
            return None
        seconds = _MISSING_SECONDS if self.has_missing else None
        return Waiting(REASON_NOT_USABLE, "; ".join(self.faults), seconds)

    @property
    def message(self) -> str:
        """Return a message about usable Secrets that need attention, such as an early expiry."""
        return "; ".join(self.notes)

    def seconds_to_renewal(self, within: float) -> float | None:
        """Return the seconds until the kubeconfig must be renewed.

        Returns None if there is no kubeconfig to renew, or if ``within`` is not 0 and the renewal
        is at least ``within`` seconds away.
        """
        if self.renewal is None:
            return None
        seconds = max(0.0, (self.renewal - self.now).total_seconds())
        return seconds if within <= 0 or seconds < within else None

    def add_missing(self, name: str) -> None:
        """Report a Secret that was deleted even though its keys are in use."""
        self.faults.append(f"Secret {name} is missing and must be restored")
        self.has_missing = True

    def add_unusable(self, name: str, why: str) -> None:
        """Record that a Secret cannot be used; ``why`` is shown to the user."""
        self.faults.append(f"Secret {name} cannot be used: {why}")

    def add_taken(self, name: str, owner: str) -> None:
        """Report a Secret of another control plane of the same Cluster, which must not be changed.

        ``owner`` is that control plane's name.
        """
        self.add_unusable(name, f"it belongs to the control plane {owner} of the same Cluster")
        self.has_other_owner = True

    def add_unlabelled(self, name: str, cluster: str) -> None:
        """Report a Secret without the label by which core and bootstrap providers find it.

        See SEC-01 and SEC-03.
        """
        self.add_unusable(name, f"it has no label {CLUSTER_NAME_LABEL}={cluster}")

    def check_expiry(self, name: str, end: datetime) -> bool:
        """Report a certificate that has expired or soon will, and return whether it is still valid.

        ``end`` is the time of expiry.
        """
        if end <= self.now:
            message = f"its certificate has expired at {times.format_time(end)}"
            self.add_unusable(name, message)
        elif end <= self.now + EXPIRY_NOTICE:
            end_time = times.format_time(end)
            self.notes.append(f"The certificate in Secret {name} ends at {end_time}")
        return end > self.now
