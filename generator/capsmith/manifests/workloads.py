"""Read a release's Deployments and other workloads: Pods, containers, and mounts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from capsmith.manifests.bundle import Bundle
from capsmith.manifests.parse import Manifest, list_of, mapping_of, text_of

_KINDS = ("Deployment", "StatefulSet", "DaemonSet")
_POD = ("spec", "template", "spec")


class Mount(NamedTuple):
    """A Secret or ConfigMap that a workload's Pods need in order to start."""

    kind: str
    name: str


def list_workloads(bundle: Bundle) -> tuple[Manifest, ...]:
    """Return a release's objects that start Pods and keep them running."""
    return bundle.of(*_KINDS)


def is_selected(workload: Manifest, selector: Mapping[str, Any]) -> bool:
    """Return whether a selector matches a workload's Pods."""
    labels = workload.mapping("spec", "template", "metadata", "labels")
    return all(labels.get(key) == value for key, value in selector.items())


def list_containers(workload: Manifest) -> list[Any]:
    """Return the containers in a workload's Pods, without init containers."""
    return workload.listing(*_POD, "containers")


def list_mounts(workload: Manifest) -> Iterator[Mount]:
    """Yield the Secrets and ConfigMaps that a workload's Pods need in order to start."""
    for volume in workload.listing(*_POD, "volumes"):
        parts = [volume, *list_of(volume, "projected", "sources")]
        for part in parts:
            yield from _named(part, "secret", "Secret", "secretName")
            yield from _named(part, "secret", "Secret", "name")
            yield from _named(part, "configMap", "ConfigMap", "name")
    for key in ("initContainers", "containers"):
        for container in workload.listing(*_POD, key):
            for entry in list_of(container, "envFrom"):
                yield from _named(entry, "secretRef", "Secret", "name")
                yield from _named(entry, "configMapRef", "ConfigMap", "name")
            for entry in list_of(container, "env"):
                source = mapping_of(entry, "valueFrom")
                yield from _named(source, "secretKeyRef", "Secret", "name")
                yield from _named(source, "configMapKeyRef", "ConfigMap", "name")


def list_missing_volumes(workload: Manifest) -> tuple[str, ...]:
    """Return the names of volumes that a workload's containers mount but its Pods do not define."""
    declared = {text_of(each, "name") for each in workload.listing(*_POD, "volumes")}
    declared |= {
        text_of(each, "metadata", "name")
        for each in workload.listing("spec", "volumeClaimTemplates")
    }
    mounted = (
        text_of(mount, "name")
        for key in ("initContainers", "containers")
        for container in workload.listing(*_POD, key)
        for mount in list_of(container, "volumeMounts")
    )
    return tuple(dict.fromkeys(name for name in mounted if name not in declared))


def _named(part: Any, key: str, kind: str, field: str) -> Iterator[Mount]:
    source = mapping_of(part, key)
    name = text_of(source, field)
    if name and source.get("optional") is not True:
        yield Mount(kind, name)
