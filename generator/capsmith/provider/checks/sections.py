"""The sections of the description: is there one, and does each have the roles that it needs?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider import derive
from capsmith.provider.checks.bootstrap import check_bootstrap
from capsmith.provider.sections import SECTION_TYPES
from capsmith.spec.place import Place
from capsmith.spec.quote import listed, shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec

_SINGLE = {"infrastructure": "InfraCluster"}
"""Section -> the role that one of its kinds plays, and one only."""
_NEEDED = {"infrastructure": ("InfraCluster", "InfraMachine")}


def check_sections(spec: ProviderSpec, top: Place) -> None:
    """Ids ``section-missing``, ``kind-missing``, ``kind-repeated``, ``kind-taken`` and
    ``credentials-unused``.
    """
    if not derive.sections(spec):
        message = "the provider has no kinds and no runtime extension"
        hint = f"add a section: {listed(SECTION_TYPES)}"
        top.error("section-missing", message, hint)
    for section, roles in _NEEDED.items():
        if section in {each.section for each in derive.sections(spec)}:
            _roles(spec, section, roles, top.at(section))
    check_bootstrap(spec, top)
    if spec.credentials is not None and spec.infrastructure is None:
        message = "credentials are those of the infrastructure, and that has no kinds here"
        top.error_at_key("credentials-unused", message, "leave them out", "credentials")


def _roles(spec: ProviderSpec, section: str, roles: tuple[str, ...], place: Place) -> None:
    found = [
        (kind, described.implements) for where, kind, described in spec.kinds() if where == section
    ]
    for role in roles:
        kinds = [kind for kind, implements in found if implements == role]
        if not kinds:
            message = f"no kind implements {role}"
            place.error_at_key("kind-missing", message, f"add one: `implements: {role}`")
        if role != _SINGLE.get(section):
            continue
        for extra in kinds[1:]:
            message = f"a provider has one {role}, and that is {shown(kinds[0])}"
            place.error("kind-repeated", message, "leave one out", extra, "implements")
