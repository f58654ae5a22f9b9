"""Clients for unit test scopes, with the objects that a test passes."""

from __future__ import annotations

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.kubernetes_client import (
    ClientSession,
    KubernetesClient,
    create_opener,
)
from capsmith_runtime.reconcile.permissions import Anything, Permissions
from capsmith_runtime.testing.core import NAMESPACE
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests


def fake_client(
    component: Component, *objects: JSON, namespace: str = NAMESPACE
) -> KubernetesClient:
    """Create a client that rejects requests that provider.yaml does not declare.

    It holds ``objects``, each with its namespace.  Set it in a scope with ``dataclasses.replace``.
    """
    kinds = [watch.resource for watch in component.watches]
    permissions = Permissions(component.permissions, kinds)
    return KubernetesClient(
        ClientSession(create_opener(_api(objects)), permissions, namespace, None)
    )


def fake_workload_client(*objects: JSON) -> KubernetesClient:
    """Create a client for a workload cluster that holds ``objects`` and allows every request."""
    return KubernetesClient(ClientSession(create_opener(_api(objects)), Anything(), "", None))


def _api(objects: tuple[JSON, ...]) -> FakeApi:
    api = FakeApi("v1beta2", Manifests(()))
    for obj in objects:
        api.add(obj)
    return api
