"""Guess the role of a kind in Cluster API from its name, its group and its template."""

from __future__ import annotations

from collections.abc import Set

_TEMPLATE = "Template"
_CORE_GROUPS = frozenset(
    f"{part}cluster.x-k8s.io" for part in ("", "addons.", "clusterctl.", "runtime.")
)
"""Groups whose kinds are no provider's."""
_CORE_KINDS = frozenset(("ipam.cluster.x-k8s.io", kind) for kind in ("IPAddress", "IPAddressClaim"))
_ENDINGS = {
    "MachinePool": "InfraMachinePool",
    "ControlPlane": "ControlPlane",
    "Cluster": "InfraCluster",
    "Machine": "InfraMachine",
    "Config": "BootstrapConfig",
    "Remediation": "Remediation",
    "IPPool": "IPPool",
    "Pool": "IPPool",
}
"""Ends of kinds and the roles that they mean; the first that fits counts."""
_BY_PREFIX = {
    "infrastructure": frozenset(
        {"MachinePool", "ControlPlane", "Cluster", "Machine", "IPPool", "Remediation"}
    ),
    "controlplane": frozenset({"ControlPlane"}),
    "bootstrap": frozenset({"Config"}),
    "ipam": frozenset({"IPPool", "Pool"}),
}
"""Ends that mean something in a group called like this, whether there is a template or not."""
_PAIRED = frozenset({"MachinePool", "ControlPlane", "Cluster", "Machine", "Config", "Remediation"})
"""Ends that mean something in any other group, once kind and template are both there."""
_WITHOUT_TEMPLATE = "IPPool"


def guess_role(group: str, kind: str, scope: str, kinds: Set[tuple[str, str]]) -> str:
    """Return the role of ``kind`` or ''; ``kinds`` are all (group, kind) of the provider."""
    if group in _CORE_GROUPS or (group, kind) in _CORE_KINDS:
        return ""
    if kind.endswith("Identity"):
        return "Identity"
    plain = kind.removesuffix(_TEMPLATE)
    allowed = _BY_PREFIX.get(group.partition(".")[0])
    if allowed is None:
        paired = {(group, plain), (group, plain + _TEMPLATE)} <= kinds
        allowed = _PAIRED if paired else frozenset()
    ending = next((ending for ending in _ENDINGS if plain.endswith(ending)), "")
    if ending not in allowed:
        return ""
    role = _ENDINGS[ending]
    if role != _WITHOUT_TEMPLATE:
        return role + kind.removeprefix(plain)
    if plain != kind:
        return ""
    return f"Global{role}" if scope == "Cluster" else role
