"""Determine which kinds use identities, and which section identity kinds belong to."""

from __future__ import annotations

from typing import Final

from capsmith.provider.draft import CREDENTIALS_FEATURE, Draft, DraftKind

SWITCHABLE: Final = frozenset(
    {"InfraMachine", "InfraMachinePool", "ControlPlane", "IPPool", "GlobalIPPool", "Addon"}
)
"""Roles for which the author enables the credentials feature separately for each kind."""
ON_BY_DEFAULT: Final = frozenset({"InfraCluster"})
"""Roles whose kinds use the provider's identities unless the author disables the feature."""
_SECTIONS: Final = ("infrastructure", "controlPlane", "ipam", "addon")


def find_identity_section(draft: Draft) -> str:
    """Return the section whose group and component the identity kinds belong to.

    Without an infrastructure section, it is the first section with a kind that uses identities.
    """
    present = [each.section for each in draft.sections]
    users = {kind.section for kind in draft.kinds if CREDENTIALS_FEATURE in kind.features}
    if "infrastructure" in present:
        return "infrastructure"
    return next((section for section in _SECTIONS if section in users), "infrastructure")


def has_identities_beside(kind: DraftKind, draft: Draft) -> bool:
    """Return whether the manager that serves a kind also serves the provider's identities."""
    section = find_identity_section(draft)
    components = ({each.section for each in component} for component in draft.components)
    sections = next((each for each in components if kind.section in each), None)
    # Invalid `components`, which have their own finding, may leave the kind's section out.
    return sections is None or section in sections


def has_identity_reference(kind: DraftKind, draft: Draft) -> bool:
    """Return whether a kind's objects refer to identities with ``spec.identityRef``."""
    if not draft.identities or not has_identities_beside(kind, draft):
        return False
    if kind.spec.implements == "Resource":
        return draft.spec.infrastructure is not None
    return CREDENTIALS_FEATURE in kind.features
