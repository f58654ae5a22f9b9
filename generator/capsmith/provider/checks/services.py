"""Check the names of the Services through which the API server and core call managers."""

from __future__ import annotations

from capsmith.provider.draft import Draft
from capsmith.provider.extension import SERVICE
from capsmith.provider.sections import SectionType
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.place import Place

_LONGEST = DnsLabel.limit - len(SERVICE) - 1
"""The name of a Service begins with the namespace (CC-31)."""


def check_services(draft: Draft, top: Place) -> None:
    """Report ``namespace-too-long`` and ``namespace-digit``, of managers with webhooks."""
    admitting = _admitting(draft)
    for section in draft.sections:
        converts = section.group and _converts(draft)
        if converts or section.section in admitting or section.section == "runtimeExtension":
            _namespace(draft, section, top)


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


def _namespace(draft: Draft, section: SectionType, top: Place) -> None:
    namespace = draft.namespaces[section.section]
    given = section.section in (draft.spec.namespaces or {})
    where = ("namespaces", section.section) if given else ("name",)
    if _LONGEST < len(namespace) <= DnsLabel.limit:
        message = f"the Service `{namespace}-{SERVICE}` would have more than {DnsLabel.limit}"
        hint = f"Add `namespaces: {{{section.section}: …}}` of at most {_LONGEST} characters."
        top.error("namespace-too-long", f"{message} characters", hint, *where)
    if namespace[:1].isdigit():
        message = f"the Service `{namespace}-{SERVICE}` would start with a digit"
        hint = f"Add `namespaces: {{{section.section}: …}}` with a name that starts with a letter."
        top.error("namespace-digit", message, hint, *where)
