"""A fake core for infrastructure providers: it sets owners and references in core's order."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from capsmith_runtime.infrastructure.kinds import IdentityKind, InfraClusterKind, InfraMachineKind
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.reconcile.kinds import CREDENTIALS_FEATURE
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.identities import add_identities, add_namespace
from capsmith_runtime.testing.manifests import Manifests

NAMESPACE = "default"
GROUP = "cluster.x-k8s.io"
BOOTSTRAP_SECRET = "e5b1c97f0d3a4486"
"""What is secret in all bootstrap data, such as the token with which a machine joins."""


class FakeCore:
    """Creates core's objects, and the provider's objects as core would."""

    def __init__(
        self,
        api: FakeApi,
        cluster_kind: InfraClusterKind,
        machine_kind: InfraMachineKind | None,
        *,
        manifests: Manifests,
        identity_kind: IdentityKind | None = None,
    ) -> None:
        """Initialise; clusters refer to the identity of their sample or of the given kind.

        ``machine_kind`` is None if the provider has no machines.
        """
        self.api = api
        self._manifests = manifests
        self.cluster_kind = cluster_kind
        self._machine_kind = machine_kind
        self.identity_kind = identity_kind
        self._old = api.core_version == "v1beta1"

    @property
    def machine_kind(self) -> InfraMachineKind:
        """Return the kind of machine; the test fails if the provider has none."""
        assert self._machine_kind is not None, "the provider has no machines"
        return self._machine_kind

    def add_credentials(self, kinds: Sequence[IdentityKind], namespace: str) -> None:
        """Add the sample identities and their Secrets, if the provider has any."""
        add_identities(self.api, self._manifests, kinds, namespace)

    def add_namespace(self, kinds: Sequence[IdentityKind], namespace: str) -> None:
        """Add a namespace whose clusters may use the sample identities."""
        add_namespace(self.api, kinds, namespace)

    def add_cluster(
        self, name: str = "c1", *, namespace: str = NAMESPACE, **spec: Any
    ) -> NamespacedName:
        """Add a Cluster, and its infrastructure cluster with the owner that core sets."""
        key = NamespacedName(namespace, name)
        kind = self.cluster_kind
        cluster = self._core_object(
            "Cluster", key, {"infrastructureRef": self._reference(kind, name), **spec}
        )
        self.api.add(self._own_object(kind, name, self.api.add(cluster), name))
        return key

    def add_machine(
        self,
        cluster: NamespacedName,
        name: str = "m1",
        *,
        bootstrap: bool = True,
        failure_domain: str | None = None,
    ) -> NamespacedName:
        """Add a Machine, and its infrastructure machine with the owner that core sets.

        The machine may be created in any failure domain if ``failure_domain`` is None.
        """
        key = NamespacedName(cluster.namespace, name)
        kind = self.machine_kind
        spec = {
            "clusterName": cluster.name,
            "version": "v1.34.0",
            "bootstrap": {},
            "infrastructureRef": self._reference(kind, name),
            **({} if failure_domain is None else {"failureDomain": failure_domain}),
        }
        machine = self.api.add(self._core_object("Machine", key, spec))
        self.api.add(self._own_object(kind, name, machine, cluster.name))
        if bootstrap:
            self.add_bootstrap(key)
        return key

    def add_bootstrap(self, machine: NamespacedName) -> None:
        """Add a Secret with bootstrap data, and set its name in the Machine."""
        name = f"{machine.name}-bootstrap"
        data = f"#cloud-config\nruncmd: [{join_command(machine)}]\n"
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"namespace": machine.namespace, "name": name},
            "data": {"value": _encoded(data), "format": _encoded("cloud-config")},
        }
        self.api.add(secret)
        self.api.change("Machine", machine, {"spec": {"bootstrap": {"dataSecretName": name}}})

    def infrastructure_is_ready(self, cluster: NamespacedName) -> None:
        """Mark the infrastructure cluster as provisioned, as core does."""
        new = {"initialization": {"infrastructureProvisioned": True}}
        status = {"infrastructureReady": True} if self._old else new
        self.api.change("Cluster", cluster, {"status": status})

    def pause(self, cluster: NamespacedName, paused: bool = True) -> None:
        """Set or remove a Cluster's ``spec.paused``."""
        # None removes the field, as omitempty does with false.
        self.api.change("Cluster", cluster, {"spec": {"paused": paused or None}})

    def infra_cluster(self, key: NamespacedName) -> JSON:
        """Return the infrastructure cluster with this key; fail if it does not exist."""
        return _there(self.api.find(self.cluster_kind.resource.kind, key), key)

    def failure_domains(self, key: NamespacedName) -> list[str]:
        """Return the failure domains that an infrastructure cluster reports, sorted by name."""
        reported = (self.infra_cluster(key).get("status") or {}).get("failureDomains")
        # A list under contract v1beta2, a mapping under v1beta1.
        return sorted(each if isinstance(each, str) else each["name"] for each in reported or ())

    def infra_machine(self, key: NamespacedName) -> JSON:
        """Return the infrastructure machine with this key; fail if it does not exist."""
        return _there(self.api.find(self.machine_kind.resource.kind, key), key)

    def provisioned(self, obj: JSON) -> bool:
        """Return whether core considers the object provisioned (IC-05, IC-06, IM-03, IM-04)."""
        status = obj.get("status") or {}
        if self._manifests.contract == "v1beta1":
            return status.get("ready") is True
        return (status.get("initialization") or {}).get("provisioned") is True

    def _core_object(self, kind: str, key: NamespacedName, spec: JSON) -> JSON:
        return {
            "apiVersion": f"{GROUP}/{self.api.core_version}",
            "kind": kind,
            "metadata": {"namespace": key.namespace, "name": key.name},
            "spec": spec,
        }

    def _own_object(
        self, kind: InfraClusterKind | InfraMachineKind, name: str, owner: JSON, cluster: str
    ) -> JSON:
        reference = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
        return {
            "apiVersion": kind.resource.api_version,
            "kind": kind.resource.kind,
            "metadata": {
                "namespace": owner["metadata"]["namespace"],
                "name": name,
                "labels": {f"{GROUP}/cluster-name": cluster},
                "ownerReferences": [reference],
            },
            "spec": {**self._manifests.sample_spec(kind.resource.kind), **self._identity(kind)},
        }

    def _identity(self, kind: InfraClusterKind | InfraMachineKind) -> JSON:
        if self.identity_kind is None or kind is not self.cluster_kind:
            return {}
        if CREDENTIALS_FEATURE not in kind.features:
            return {}
        name = self.identity_kind.resource.kind
        (identity,) = self._manifests.samples(name)
        return {"identityRef": {"kind": name, "name": identity["metadata"]["name"]}}

    def _reference(self, kind: InfraClusterKind | InfraMachineKind, name: str) -> JSON:
        resource = kind.resource
        if self._old:
            return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}
        return {"apiGroup": resource.group, "kind": resource.kind, "name": name}


def join_command(machine: NamespacedName) -> str:
    """Return what the bootstrap data of a machine run, and those of no other machine."""
    return f"join --token {BOOTSTRAP_SECRET} --name {machine}"


def _there(obj: JSON | None, key: NamespacedName) -> JSON:
    assert obj is not None, f"{key} is gone"
    return obj


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
