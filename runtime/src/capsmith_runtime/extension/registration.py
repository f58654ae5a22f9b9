"""The ExtensionConfig, which registers the extension with core (RX-01, RX-09).

The extension creates it, not clusterctl.  Core accepts it only while core's admission webhook is
up and the feature gate RuntimeSDK is on, and only the extension knows its own Service and CA
bundle.

Core does not start while it cannot reach a registered extension, so the registration must be
removed together with the extension.  clusterctl does not delete objects of core's kinds, but it
deletes the manager's ClusterRole.  So the ClusterRole owns the ExtensionConfig, and the garbage
collector deletes the latter.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.contract.constants import WATCH_FILTER_LABEL
from capsmith_runtime.errors import ForbiddenError, NotFoundError
from capsmith_runtime.kube.client import JSON, KubeClient, NamespacedName, ResourceType
from capsmith_runtime.reconcile.caches import WatchScope

GROUP: Final = "runtime.cluster.x-k8s.io"
ROLE: Final = ResourceType(
    "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False
)
VERSIONS: Final = ("v1beta2", "v1alpha1")
"""In order of preference; the fields that are written here are the same in both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The names under which an extension is registered."""

    name: str
    """Name of the ExtensionConfig, and so the second part of the name of each handler."""
    label: str
    """The provider's manifest label."""
    service: str
    """Name of the Service in front of the extension, in its own namespace."""
    role: str
    """Name of the manager's ClusterRole, which owns the ExtensionConfig."""
    url: str = ""
    """URL of an extension that runs outside the cluster; replaces the Service."""


class NotServedError(Exception):
    """Raised if the API server serves no ExtensionConfigs: Cluster API is not installed yet."""


async def register(
    client: KubeClient, registration: Registration, scope: WatchScope, ca_bundle: bytes
) -> str:
    """Apply the ExtensionConfig with the CA bundle; return its API version.

    Fields that users set, such as settings or a namespace selector, are kept.  Raises ApiError or
    NotServedError.
    """
    version = await find_served_version(client)
    resource = ResourceType(GROUP, version, "ExtensionConfig", "extensionconfigs", namespaced=False)
    config = build_extension_config(registration, scope, ca_bundle, resource.api_version)
    owner = await _owner_reference(client, registration.role)
    if owner is not None:
        config["metadata"]["ownerReferences"] = [owner]
    # Forced: if another writer has changed these fields, core cannot reach the extension.
    await client.apply(resource, config, force=True)
    return version


async def find_served_version(client: KubeClient) -> str:
    """Return the newest supported version of ExtensionConfig that the API server serves.

    Raises ApiError or NotServedError.
    """
    served = await client.served_versions(GROUP)
    for version in VERSIONS:
        if version in served:
            return version
    raise NotServedError(f"{GROUP} is not served in any of {', '.join(VERSIONS)}")


def build_extension_config(
    registration: Registration, scope: WatchScope, ca_bundle: bytes, api_version: str
) -> JSON:
    """Return the ExtensionConfig to apply."""
    service = {"namespace": scope.own_namespace, "name": registration.service}
    client: JSON = {"url": registration.url} if registration.url else {"service": service}
    if ca_bundle:
        client["caBundle"] = base64.b64encode(ca_bundle).decode()
    labels = {"cluster.x-k8s.io/provider": registration.label}
    if scope.watch_filter:
        labels[WATCH_FILTER_LABEL] = scope.watch_filter
    spec: JSON = {"clientConfig": client}
    if scope.namespace:
        namespace_labels = {"kubernetes.io/metadata.name": scope.namespace}
        spec["namespaceSelector"] = {"matchLabels": namespace_labels}
    return {
        "apiVersion": api_version,
        "kind": "ExtensionConfig",
        "metadata": {"name": registration.name, "labels": labels},
        "spec": spec,
    }


async def _owner_reference(client: KubeClient, name: str) -> JSON | None:
    """Return None if there is no ClusterRole, as for an extension that runs outside the cluster."""
    try:
        role = await client.get(ROLE, NamespacedName("", name))
    # Outside the cluster the manager may have a role of another name, which it may not read.
    except (NotFoundError, ForbiddenError):
        return None
    uid = role["metadata"]["uid"]
    return {"apiVersion": ROLE.api_version, "kind": ROLE.kind, "name": name, "uid": uid}
