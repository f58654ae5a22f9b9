"""A client for the scopes of unit tests, with the objects that a test gives it."""

from __future__ import annotations

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.kubernetes_client import ClientSession, KubernetesClient
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.testing.core import NAMESPACE
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests


def fake_client(
    component: Component, *objects: JSON, namespace: str = NAMESPACE
) -> KubernetesClient:
    """Return a client that refuses what provider.yaml does not declare for a component.

    It holds ``objects``, each with its namespace.  Give it to a scope with ``dataclasses.replace``.
    """
    api = FakeApi("v1beta2", Manifests(()))
    for obj in objects:
        api.add(obj)
    kinds = [watch.resource for watch in component.watches]
    permissions = Permissions(component.permissions, kinds)
    return KubernetesClient(ClientSession(api, permissions, namespace, None))
