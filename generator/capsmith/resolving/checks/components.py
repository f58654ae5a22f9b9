"""Check components, the names of their Services, and clusterctl variables in their files."""

from __future__ import annotations

import re
from typing import Any

from capsmith.output import monitoring
from capsmith.provider import hooks
from capsmith.provider.draft import Draft
from capsmith.provider.sections import SectionType
from capsmith.resolving.checks.names import check_repeats
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.quote import quote
from capsmith.yamldoc.reporter import PathReporter

_INFRASTRUCTURE = "infrastructure"


def check_components(draft: Draft, top: PathReporter) -> None:
    """Report components that clusterctl cannot install (CC-51, CC-70).

    Ids: ``component-type``, ``component-repeated`` and ``section-unused``.
    """
    reporter = top.at("components")
    present = {section.section for section in draft.sections}
    seen: dict[str, str] = {}
    for main, parts in (draft.spec.components or {}).items():
        check_repeats(parts, reporter.at(main))
        for index, part in enumerate(parts):
            if part not in present:
                message = f"the section {quote(part)} does not exist"
                reporter.add_error("section-unused", message, "Remove it.", main, index)
            elif seen.setdefault(part, main) != main:
                message = f"{quote(part)} is already in the component {quote(seen[part])}"
                reporter.add_error(
                    "component-repeated", message, "Remove it from one of them.", main, index
                )
        _check_type(main, parts, reporter)
        _check_namespaces(draft, main, parts, top)


def _check_type(main: str, parts: tuple[str, ...], reporter: PathReporter) -> None:
    """Check the section that gives a component its type, which clusterctl must know (CC-51)."""
    if main not in parts:
        message = f"the component {quote(main)} does not have the section {quote(main)}"
        hint = f"Add {main} to the list, or use one of the listed sections as the key."
        reporter.add_error_at_key("component-type", message, hint, main)
    elif _INFRASTRUCTURE in parts and main != _INFRASTRUCTURE:
        # CC-70: clusterctl looks for cluster templates at infrastructure providers only.
        message = "clusterctl only finds the cluster templates of infrastructure providers"
        hint = f"Use `infrastructure: [{', '.join(parts)}]`."
        reporter.add_error_at_key("component-type", message, hint, main)


def _check_namespaces(draft: Draft, main: str, parts: tuple[str, ...], top: PathReporter) -> None:
    for section in draft.spec.namespaces or {}:
        if section != main and section in parts:
            message = f"{section} is in the component {quote(main)}"
            hint = "Remove it: the component has one namespace."
            top.add_error_at_key("section-unused", message, hint, "namespaces", section)


def check_services(draft: Draft, top: PathReporter) -> None:
    """Report namespaces that cannot be the prefix of a Service's name (CC-31).

    Ids: ``namespace-too-long`` and ``namespace-digit``.
    """
    admitting = _admitting(draft)
    for section, *_ in draft.components:
        # Names of Services differ in length: which one is the longest depends on what calls the
        # manager.
        converts = section.group and _converts(draft)
        called = converts or section.section in admitting or section.section == "runtimeExtension"
        _check_namespace(draft, section, hooks.SERVICE if called else monitoring.SERVICE, top)


def _converts(draft: Draft) -> bool:
    """Return whether API versions or releases follow several contracts."""
    return len({*draft.spec.contracts, *draft.spec.releases.values()}) > 1


def _admitting(draft: Draft) -> set[str]:
    """Return the main sections of the components that have kinds with admission webhooks."""
    admitted = {kind.section for kind in draft.kinds if kind.webhooks is not None}
    return {
        sections[0].section
        for sections in draft.components
        if any(each.section in admitted for each in sections)
    }


def _check_namespace(draft: Draft, section: SectionType, service: str, top: PathReporter) -> None:
    namespace = draft.namespaces[section.section]
    given = section.section in (draft.spec.namespaces or {})
    where = ("namespaces", section.section) if given else ("name",)
    longest = DnsLabel.limit - len(service) - 1
    if longest < len(namespace) <= DnsLabel.limit:
        message = f"the Service `{namespace}-{service}` would have more than {DnsLabel.limit}"
        hint = f"Add `namespaces: {{{section.section}: …}}` of at most {longest} characters."
        top.add_error("namespace-too-long", f"{message} characters", hint, *where)
    if namespace[:1].isdigit():
        message = f"the Service `{namespace}-{service}` would start with a digit"
        hint = f"Add `namespaces: {{{section.section}: …}}` with a name that starts with a letter."
        top.add_error("namespace-digit", message, hint, *where)


_VARIABLE = re.compile(r"\$\{|\$\$")


def check_variables(reporter: PathReporter, value: Any) -> None:
    """Report ``clusterctl-variable`` for strings in ``value``, at any depth.

    ``reporter`` has the path to ``value``.  clusterctl treats ``${X}`` as a variable that the user
    must set, and replaces ``$$`` with ``$``, even in the descriptions and patterns of a CRD.
    """
    # The values only: keys of provider.yaml have forms that exclude a dollar.
    if isinstance(value, dict):
        for name, below in value.items():
            check_variables(reporter.at(name), below)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            check_variables(reporter.at(index), below)
    elif isinstance(value, str) and (found := _VARIABLE.search(value)):
        reporter.add_error(
            "clusterctl-variable",
            f"clusterctl would replace {quote(found[0] + value[found.end() :][:20])} in this text",
            "Write it without `${` and `$$`; use [$] in a regular expression.",
        )
