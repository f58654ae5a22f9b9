"""The state that a failed test leaves, for its report."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from capsmith.clusters.processes.kube import JSON, KubeClient

_CORE_KINDS = ("Cluster", "Machine", "MachineSet", "MachineDeployment", "MachinePool")


def objects_text(client: KubeClient, core: str, crds: list[JSON], namespace: str) -> str:
    """Return the objects of core and of the provider in a namespace, as YAML."""
    found = [*_objects(client, core, crds, namespace)]
    for each in found:
        each["metadata"].pop("managedFields", None)
    return yaml.safe_dump_all(found, sort_keys=False)


def _objects(client: KubeClient, core: str, crds: list[JSON], namespace: str) -> Iterator[JSON]:
    for kind in _CORE_KINDS:
        yield from client.list(core, kind, namespace)
    for crd in crds:
        spec = crd["spec"]
        stored = next(version["name"] for version in spec["versions"] if version["storage"])
        yield from client.list(f"{spec['group']}/{stored}", spec["names"]["kind"], namespace)
    yield from client.list("events.k8s.io/v1", "Event", namespace)
