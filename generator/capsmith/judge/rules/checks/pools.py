"""Pools: of machines, whose machines core has to find, and of addresses, whose CRDs are core's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from capsmith.judge.rules.checks.registry import Context, Problem, check
from capsmith.manifests.bundle import Artefact
from capsmith.manifests.schemas import find


@dataclass(frozen=True, slots=True)
class MachineKind:
    """Where a pool names the kind of its machines, and the role of that kind."""

    path: str
    """Where a pool names the kind."""
    role: str
    """The role of that kind."""


@check("pool-machine-kind", MachineKind)
def pool_machine_kind(context: Context, params: MachineKind) -> Iterator[Problem]:
    """MP-11: core lists the machines of a pool in the pool's own group and version."""
    for crd, version in context.versions():
        if find(version.schema, params.path) is None:
            continue
        machines = [
            other.kind
            for other in context.bundle.crds
            if other.role == params.role
            and other.group == crd.group
            and any(v.name == version.name and v.served for v in other.versions)
        ]
        if not machines:
            yield Problem(
                crd.manifest,
                f"{crd.kind} {version.name}: {params.path} is declared, but no {params.role} of "
                f"{crd.group} serves {version.name}",
                path=crd.schema_path(version.name, params.path),
            )


@dataclass(frozen=True, slots=True)
class CoreCrds:
    """CRDs that core ships, and one by which core itself is known."""

    names: tuple[str, ...]
    """Names of CRDs."""
    owner: str
    """The name of the CRD that only core ships."""


@check("crd-not-shipped", CoreCrds)
def crd_not_shipped(context: Context, params: CoreCrds) -> Iterator[Problem]:
    """IP-01: a provider does not ship what core ships."""
    crds = [
        manifest
        for manifest in context.bundle.files(Artefact.COMPONENTS)
        if manifest.kind == "CustomResourceDefinition"
    ]
    if any(crd.name == params.owner for crd in crds):
        return
    for crd in crds:
        if crd.name in params.names:
            yield Problem(crd, f"{crd} is shipped by core", path=("metadata", "name"))
