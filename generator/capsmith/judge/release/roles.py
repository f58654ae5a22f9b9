"""The roles of a provider's kinds: given, or recognised by names, templates and fields."""

from __future__ import annotations

from collections.abc import Mapping

from capsmith.manifests.bundle import Bundle
from capsmith.manifests.crds import Crd
from capsmith.manifests.schemas import find

NONE = "none"
"""The role of a kind that core never uses."""
_TELLING = {
    "InfraMachine": ("spec.providerID", "status.ready", "status.initialization"),
    "InfraCluster": ("spec.controlPlaneEndpoint", "status.ready", "status.initialization"),
    "InfraMachinePool": (
        *("spec.providerIDList", "status.ready", "status.initialization"),
        "status.infrastructureMachineKind",
    ),
    "BootstrapConfig": ("status.dataSecretName", "status.ready", "status.initialization"),
    "ControlPlane": ("spec.version", "status.initialized", "status.initialization", "status.ready"),
}
"""Fields of which a kind of the role has at least one, in any version."""


def roles_of(bundle: Bundle, given: Mapping[str, str]) -> dict[str, str]:
    """Return the role of each CRD by the CRD's name; ``given`` is by kind or by that name.

    A kind that is called like a role, has no template and none of the role's fields is a helper.
    """
    kinds = {(crd.group, crd.kind) for crd in bundle.crds}
    roles = {}
    for crd in bundle.crds:
        name = crd.manifest.name
        role = given.get(name) or given.get(crd.kind) or ""
        if not role and _is_helper(crd, kinds):
            role = NONE
        roles[name] = role or crd.role or NONE
    return roles


def _is_helper(crd: Crd, kinds: set[tuple[str, str]]) -> bool:
    telling = _TELLING.get(crd.role)
    if telling is None or (crd.group, f"{crd.kind}Template") in kinds:
        return False
    return not any(find(version.schema, path) for version in crd.versions for path in telling)
