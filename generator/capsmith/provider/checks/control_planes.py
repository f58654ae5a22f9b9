"""Control planes: which bootstrap configurations their Machines get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider.control_planes import FIELD, bootstrap_of, is_machine_based
from capsmith.spec.place import Place
from capsmith.spec.quote import listed, shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec
    from capsmith.spec.sections import KindSpec


def check_control_planes(spec: ProviderSpec, top: Place) -> None:
    """Ids ``bootstrap-missing``, ``-unknown``, ``-unused`` and ``field-reserved``."""
    for kind, described in spec.section("controlPlane").items():
        place = top.at("controlPlane", kind)
        if is_machine_based(described):
            _bootstrap(spec, described, place)
            _field(described, place)
        elif getattr(described, "bootstrap", None) is not None:
            message = "a managed control plane has no Machines that could be bootstrapped"
            place.error_at_key("bootstrap-unused", message, "leave it out", "bootstrap")


def _bootstrap(spec: ProviderSpec, described: KindSpec, place: Place) -> None:
    if bootstrap_of(described, spec) is not None:
        return
    named, kinds = getattr(described, "bootstrap", None), list(spec.section("bootstrap"))
    if named is not None:
        message = f"{shown(named)} is no kind of the section bootstrap"
        hint = "name one of them, or that of another provider: {group: …, kind: …}"
        place.error("bootstrap-unknown", message, hint, "bootstrap")
    elif kinds:
        message = f"there are several kinds of bootstrap configurations: {listed(kinds)}"
        place.error_at_key("bootstrap-missing", message, "choose one: `bootstrap: <kind>`")
    else:
        message = "its Machines need bootstrap configurations, and there is no section bootstrap"
        hint = "add one, or name the kind of another provider: `bootstrap: {group: …, kind: …}`"
        place.error_at_key("bootstrap-missing", message, hint)


def _field(described: KindSpec, place: Place) -> None:
    if FIELD in (described.spec or {}):
        message = f"{shown(FIELD)} holds the spec of the Machines' bootstrap configurations"
        place.error_at_key("field-reserved", message, "leave it out", "spec", FIELD)
