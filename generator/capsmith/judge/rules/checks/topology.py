"""What topology writes into the provider's kinds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.parse import mapping_of
from capsmith.manifests.schemas import find, is_open


@dataclass(frozen=True, slots=True)
class References:
    """Where a control plane refers to the infrastructure of its machines."""

    path: str
    """By this contract."""
    other: str
    """By another one."""


@check("topology-infrastructure-ref", References)
def infrastructure_ref(context: Context, params: References) -> Iterator[Problem]:
    """TP-20, TP-21: the reference that core writes is declared."""
    kinds = {(crd.group, crd.kind) for crd in context.bundle.crds}
    for crd, version in context.versions():
        if (crd.group, f"{crd.kind}Template") not in kinds:
            continue
        holder = find(version.schema, "spec.machineTemplate")
        declared = find(version.schema, params.path) or is_open(version.schema, params.path)
        if declared or not holder or not mapping_of(holder, "properties"):
            continue
        elsewhere = find(version.schema, params.other) is not None
        found = f"; found {params.other}" if elsewhere else ""
        yield Problem(
            crd.manifest,
            f"{crd.kind} {version.name}: {params.path} is not declared{found}",
            path=crd.schema_path(version.name, params.other if elsewhere else params.path),
            when="" if elsewhere else "a ClusterClass has controlPlane.machineInfrastructure",
        )
