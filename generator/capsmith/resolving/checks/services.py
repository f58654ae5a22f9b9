"""Check the names of the Services of managers: for metrics, and for those that call webhooks."""

from __future__ import annotations

from capsmith.output import monitoring
from capsmith.provider import extension
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.sections import SectionType
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.quote import shown
from capsmith.yamldoc.reporter import Place


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


def check_services(draft: Draft, top: Place) -> None:
    """Report ``namespace-too-long`` and ``namespace-digit``.

    The name of a Service begins with the namespace (CC-31).
    """
    admitting = _admitting(draft)
    for section, *_ in draft.components:
        converts = section.group and _converts(draft)
        called = converts or section.section in admitting or section.section == "runtimeExtension"
        _namespace(draft, section, extension.SERVICE if called else monitoring.SERVICE, top)


def _converts(draft: Draft) -> bool:
    """Return whether API versions, or releases, follow several contracts."""
    return len({*draft.spec.contracts, *draft.spec.releases.values()}) > 1


def _admitting(draft: Draft) -> set[str]:
    """Return the main sections of the components that have kinds with admission webhooks."""
    admitted = {kind.section for kind in draft.kinds if kind.webhooks is not None}
    return {
        sections[0].section
        for sections in draft.components
        if any(each.section in admitted for each in sections)
    }


def _namespace(draft: Draft, section: SectionType, service: str, top: Place) -> None:
    namespace = draft.namespaces[section.section]
    given = section.section in (draft.spec.namespaces or {})
    where = ("namespaces", section.section) if given else ("name",)
    longest = DnsLabel.limit - len(service) - 1
    if longest < len(namespace) <= DnsLabel.limit:
        message = f"the Service `{namespace}-{service}` would have more than {DnsLabel.limit}"
        hint = f"Add `namespaces: {{{section.section}: …}}` of at most {longest} characters."
        top.error("namespace-too-long", f"{message} characters", hint, *where)
    if namespace[:1].isdigit():
        message = f"the Service `{namespace}-{service}` would start with a digit"
        hint = f"Add `namespaces: {{{section.section}: …}}` with a name that starts with a letter."
        top.error("namespace-digit", message, hint, *where)
