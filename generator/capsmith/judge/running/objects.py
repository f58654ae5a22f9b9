"""Build the provider's objects for test clusters from a cluster template's documents.

Pure functions that neither read nor write files.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from capsmith.clusters.processes.kube import JSON
from capsmith.errors import UnreadableInput
from capsmith.manifests.parse import at, mapping_of, text_of

TEMPLATE_NAME = "conformance-cluster"
"""Cluster name that the template is generated with. Each test cluster replaces it with its own."""
CORE_GROUP = "cluster.x-k8s.io"
CLUSTER_NAME = f"{CORE_GROUP}/cluster-name"
CONTROL_PLANE = f"{CORE_GROUP}/control-plane"
MACHINE_POOL = "InfraMachinePool"
_CLUSTER = "InfraCluster"
_MACHINE = "InfraMachine"
_REPLACED = {"BootstrapConfig", "BootstrapConfigTemplate", "ControlPlane", "ControlPlaneTemplate"}
_FOREIGN_GROUPS = ("bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", CORE_GROUP)


@dataclass(frozen=True)
class ProviderObjects:
    """The infrastructure objects in a cluster template, and the objects they depend on."""

    cluster_document: JSON
    template_document: JSON
    """The template's document for infrastructure machines."""
    other_documents: tuple[JSON, ...]
    """Documents for neither core nor a bootstrap or control plane provider, such as credentials."""
    pool_documents: tuple[JSON, ...] = ()
    """Machine pool documents, one per kind."""

    @property
    def cluster_kind(self) -> str:
        """Return the kind of infrastructure clusters."""
        return str(self.cluster_document["kind"])

    @property
    def machine_kind(self) -> str:
        """Return the kind of infrastructure machines."""
        return str(self.template_document["kind"]).removesuffix("Template")

    @property
    def cluster_version(self) -> str:
        """Return the API version of infrastructure clusters."""
        return str(self.cluster_document["apiVersion"])

    @property
    def machine_version(self) -> str:
        """Return the API version of infrastructure machines."""
        return str(self.template_document["apiVersion"])

    def cluster(self, cluster: str, namespace: str) -> JSON:
        """Return the infrastructure cluster, renamed for the test cluster ``cluster``."""
        return _renamed(self.cluster_document, cluster, namespace, cluster)

    @property
    def pool_kinds(self) -> list[str]:
        """Return the kinds of machine pools."""
        return [str(each["kind"]) for each in self.pool_documents]

    def pool(self, kind: str, cluster: str, namespace: str, name: str) -> JSON:
        """Return a machine pool of the given kind, called ``name``, for a Cluster."""
        document = next(each for each in self.pool_documents if each["kind"] == kind)
        return _renamed(document, cluster, namespace, name)

    def template(self, cluster: str, namespace: str, name: str) -> JSON:
        """Return the template for infrastructure machines, renamed to ``name``."""
        return _renamed(self.template_document, cluster, namespace, name)

    def machine(self, cluster: str, namespace: str, name: str) -> JSON:
        """Return an infrastructure machine cloned from the template, as a control plane would."""
        template = self.template(cluster, namespace, name)
        inner = mapping_of(template, "spec", "template")
        group = template["apiVersion"].partition("/")[0]
        annotations = {
            **mapping_of(inner, "metadata", "annotations"),
            f"{CORE_GROUP}/cloned-from-name": name,
            f"{CORE_GROUP}/cloned-from-groupkind": f"{template['kind']}.{group}",
        }
        labels = {**mapping_of(inner, "metadata", "labels"), CLUSTER_NAME: cluster}
        return {
            "apiVersion": template["apiVersion"],
            "kind": self.machine_kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "annotations": annotations,
            },
            "spec": dict(mapping_of(inner, "spec")),
        }

    def others(self, cluster: str, namespace: str) -> list[JSON]:
        """Return the objects from ``other_documents``, adapted to a test cluster."""
        return [
            _renamed(each, cluster, namespace, _replaced(each["metadata"]["name"], cluster))
            for each in self.other_documents
        ]


def select_provider_objects(documents: Iterable[JSON], roles: Mapping[str, str]) -> ProviderObjects:
    """Return the provider's objects from a cluster template; ``roles`` are keyed by kind.

    Raises UnreadableInput (``conformance-objects``) if the template has no infrastructure cluster
    or no machine template.
    """
    documents = list(documents)
    clusters = [each for each in documents if roles.get(each["kind"]) == _CLUSTER]
    templates = [each for each in documents if roles.get(each["kind"]) == f"{_MACHINE}Template"]
    for found, role in ((clusters, _CLUSTER), (templates, f"{_MACHINE}Template")):
        if not found:
            raise UnreadableInput(
                "conformance-objects",
                f"no object has the role {role}",
                hint="Specify a flavor with --flavor, or objects with --objects.",
            )
    pools = {each["kind"]: each for each in documents if roles.get(each["kind"]) == MACHINE_POOL}
    known = {id(each) for each in (*clusters, *templates)}
    others = [each for each in documents if id(each) not in known and _is_other(each, roles)]
    template = _used_template(templates, documents)
    return ProviderObjects(clusters[0], template, tuple(others), tuple(pools.values()))


def _used_template(templates: Sequence[JSON], documents: Sequence[JSON]) -> JSON:
    """Return the workers' template, which does not depend on a control plane, or else the first."""
    # A control plane's machines may need load balancers or disks that a test cluster does not have.
    deployments = [each for each in documents if each["kind"] == "MachineDeployment"]
    for deployment in deployments:
        reference = at(deployment, "spec", "template", "spec", "infrastructureRef")
        for template in templates:
            names = (template["kind"], template["metadata"]["name"])
            if names == (text_of(reference, "kind"), text_of(reference, "name")):
                return template
    return templates[0]


def _is_other(document: JSON, roles: Mapping[str, str]) -> bool:
    group, role = str(document["apiVersion"]).rpartition("/")[0], roles.get(document["kind"])
    return group not in _FOREIGN_GROUPS and role not in (*_REPLACED, MACHINE_POOL)


def _renamed(document: JSON, cluster: str, namespace: str, name: str) -> JSON:
    # Replaced as text, because any value may contain the name: a subnet, a tag, the name of a
    # Secret.
    text = json.dumps(copy.deepcopy(document))
    renamed: JSON = json.loads(_replaced(text, cluster))
    renamed["metadata"] = {**renamed["metadata"], "name": name, "namespace": namespace}
    return renamed


def _replaced(text: str, cluster: str) -> str:
    return text.replace(TEMPLATE_NAME, cluster)
