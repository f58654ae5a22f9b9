"""Check the bootstrap configurations of control planes of Machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider.control_planes import FIELD, is_machine_based
from capsmith.provider.draft import Draft, DraftKind
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import listed, shown

if TYPE_CHECKING:
    from capsmith.provider_yaml.sections import KindSpec


def check_control_planes(draft: Draft, top: Place) -> None:
    """Report ``bootstrap-missing``, ``-unknown``, ``-unused`` and ``field-reserved``."""
    for kind in draft.kinds_of("controlPlane"):
        place = top.at("controlPlane", kind.name)
        if is_machine_based(kind.spec):
            _bootstrap(draft, kind, place)
            _field(kind.spec, place)
        elif getattr(kind.spec, "bootstrap", None) is not None:
            message = "a managed control plane has no Machines to bootstrap"
            place.error_at_key("bootstrap-unused", message, "Remove it.", "bootstrap")


def _bootstrap(draft: Draft, kind: DraftKind, place: Place) -> None:
    if kind.bootstrap is not None:
        return
    named = getattr(kind.spec, "bootstrap", None)
    kinds = [each.name for each in draft.kinds_of("bootstrap")]
    if named is not None:
        message = f"{shown(named)} is not a kind of the section bootstrap"
        hint = "Use one of them, or that of another provider: {group: …, kind: …}."
        place.error("bootstrap-unknown", message, hint, "bootstrap")
    elif kinds:
        message = f"the kind of bootstrap configurations is ambiguous: {listed(kinds)}"
        place.error_at_key("bootstrap-missing", message, "Choose one: `bootstrap: <kind>`.")
    else:
        message = "its Machines require bootstrap configurations, but there is no section bootstrap"
        hint = "Add one, or name the kind of another provider: `bootstrap: {group: …, kind: …}`."
        place.error_at_key("bootstrap-missing", message, hint)


def _field(described: KindSpec, place: Place) -> None:
    if FIELD in (described.spec or {}):
        message = f"{shown(FIELD)} holds the spec of the Machines' bootstrap configurations"
        place.error_at_key("field-reserved", message, "Remove it.", "spec", FIELD)
