"""The minimal spec of a control plane of Machines, for samples."""

from __future__ import annotations

from typing import Any

from capsmith.provider.model import Provider, Resource, Role

_FOREIGN = ("infrastructure.cluster.x-k8s.io/v1beta1", "ExampleMachineTemplate", "example")


def example_control_plane(resource: Resource, provider: Provider) -> dict[str, Any]:
    """Return version and infrastructure template of the Machines; nothing for other roles.

    The template is this repository's own where it has one (CP-12, CP-13).
    """
    if resource.role is not Role.CONTROL_PLANE:
        return {}
    fields: dict[str, Any] = (
        {"version": str(provider.kubernetes)} if "version" in resource.features else {}
    )
    if "machines" not in resource.features:
        return fields
    version, kind, name = _template(provider)
    if resource.storage_version.contract.version == "v1beta1":
        reference = {"apiVersion": version, "kind": kind, "name": name, "namespace": "default"}
        return {**fields, "machineTemplate": {"infrastructureRef": reference}}
    reference = {"apiGroup": version.partition("/")[0], "kind": kind, "name": name}
    return {**fields, "machineTemplate": {"spec": {"infrastructureRef": reference}}}


def _template(provider: Provider) -> tuple[str, str, str]:
    for found in provider.resources:
        if found.role is Role.INFRA_MACHINE_TEMPLATE:
            version = f"{found.group}/{found.storage_version.name}"
            return version, str(found.kind), str(found.singular)
    return _FOREIGN
