"""Check the key ``components``: which sections clusterctl installs as one provider."""

from __future__ import annotations

from capsmith.provider.draft import Draft
from capsmith.resolving.checks.names import repeats
from capsmith.yamldoc.quote import shown
from capsmith.yamldoc.reporter import Place

_INFRASTRUCTURE = "infrastructure"


def check_components(draft: Draft, top: Place) -> None:
    """Report ``component-type``, ``component-repeated`` and ``section-unused``."""
    place = top.at("components")
    present = {section.section for section in draft.sections}
    seen: dict[str, str] = {}
    for main, parts in (draft.spec.components or {}).items():
        repeats(parts, place.at(main))
        for index, part in enumerate(parts):
            if part not in present:
                message = f"the section {shown(part)} does not exist"
                place.error("section-unused", message, "Remove it.", main, index)
            elif seen.setdefault(part, main) != main:
                message = f"{shown(part)} is already in the component {shown(seen[part])}"
                place.error(
                    "component-repeated", message, "Remove it from one of them.", main, index
                )
        _check_type(main, parts, place)
        _check_namespaces(draft, main, parts, top)


def _check_type(main: str, parts: tuple[str, ...], place: Place) -> None:
    """Check the section that gives the component its type: clusterctl knows no other (CC-51)."""
    if main not in parts:
        message = f"the component {shown(main)} does not have the section {shown(main)}"
        hint = f"Add {main} to the list, or use one of the listed sections as the key."
        place.error_at_key("component-type", message, hint, main)
    elif _INFRASTRUCTURE in parts and main != _INFRASTRUCTURE:
        # CC-70: clusterctl looks for cluster templates at infrastructure providers only.
        message = "clusterctl only finds the cluster templates of infrastructure providers"
        hint = f"Use `infrastructure: [{', '.join(parts)}]`."
        place.error_at_key("component-type", message, hint, main)


def _check_namespaces(draft: Draft, main: str, parts: tuple[str, ...], top: Place) -> None:
    for section in draft.spec.namespaces or {}:
        if section != main and section in parts:
            message = f"{section} is in the component {shown(main)}"
            hint = "Remove it: the component has one namespace."
            top.error_at_key("section-unused", message, hint, "namespaces", section)
