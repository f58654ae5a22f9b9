"""Check that the settings of admission webhooks have an effect."""

from __future__ import annotations

from capsmith.provider.draft import Draft, DraftKind
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import shown


def check_webhooks(draft: Draft, top: Place) -> None:
    """Report ``webhooks-empty``, ``webhooks-deletion``, ``webhooks-templates``."""
    for kind in draft.kinds:
        if kind.webhooks is not None:
            _settings(kind, top.at(kind.section, kind.name, "webhooks"))


def _settings(kind: DraftKind, place: Place) -> None:
    webhooks, written = kind.webhooks, kind.spec.webhooks
    if webhooks is None or written is None:
        return
    if not (webhooks.validation or webhooks.defaulting):
        message = "these webhooks neither validate nor default anything"
        hint = "Add `validation: true` or `defaulting: true`, or remove `webhooks`."
        place.error_at_key("webhooks-empty", message, hint)
    elif webhooks.deletion and not webhooks.validation:
        message = "`deletion` requires `validation: true`"
        place.error_at_key("webhooks-deletion", message, "Add that, or remove this.", "deletion")
    if written.templates is not None and not kind.has_template:
        message = f"{shown(kind.name)} has no templates"
        place.error_at_key("webhooks-templates", message, "Remove this.", "templates")
