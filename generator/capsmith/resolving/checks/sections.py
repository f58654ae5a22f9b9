"""Check sections and components: roles, hooks, Service names, and clusterctl variables."""

from __future__ import annotations

import re
from typing import Any, Final

from capsmith.output import monitoring
from capsmith.provider import hooks
from capsmith.provider.described_kinds import MACHINES, ROLES_OF_MACHINES, is_machine_based
from capsmith.provider.draft import Draft, DraftKind
from capsmith.provider.sections import SECTION_TYPES, SectionType
from capsmith.resolving.checks.names import check_repeats
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.document import PathReporter
from capsmith.yamldoc.quote import join_names, quote

_SECTION: Final = "bootstrap"
_INFRASTRUCTURE: Final = "infrastructure"


_TAKEN: Final = "KubeadmConfig"


_ITSELF: Final = "kubeadm"
"""Name of the kubeadm bootstrap provider, to which KubeadmConfig belongs."""


def check_bootstrap(draft: Draft, top: PathReporter) -> None:
    """Report ``kind-taken`` for a KubeadmConfig in the kubeadm bootstrap provider's group.

    Core treats templates of that kind specially (BC-17).
    """
    for kind in (each.name for each in draft.kinds_of(_SECTION)):
        if kind.lower() != _TAKEN.lower():
            continue
        if draft.groups[_SECTION] == SECTION_TYPES[_SECTION].group:
            message = f"the kubeadm bootstrap provider already has {quote(kind)} in this group"
            hint = "Choose another name, or `groups: {bootstrap: …}` with a domain of your own."
            here = top.at(_SECTION, kind)
            if draft.spec.name == _ITSELF:
                hint = "Do not install this provider together with the kubeadm bootstrap provider."
                here.add_warning("kind-taken", message, hint)
            else:
                here.add_error_at_key("kind-taken", message, hint)


_NEEDED = ("InfraCluster", "InfraMachine")


def check_sections(draft: Draft, top: PathReporter) -> None:
    """Report a provider.yaml without sections, and sections that lack a required kind.

    Ids: ``section-missing``, ``kind-missing``, ``section-unused``, ``machines-excluded`` and
    ``end-to-end-tests``.
    """
    if not draft.sections:
        message = "the provider has no kinds and no runtime extension"
        hint = f"Add a section: {join_names(SECTION_TYPES)}."
        top.add_error("section-missing", message, hint)
    if draft.spec.infrastructure is not None:
        _check_roles(draft, top.at(_INFRASTRUCTURE))
    if draft.spec.machines is False:
        _check_excluded(draft, top)
    if draft.spec.e2e:
        _check_e2e(draft, top)


def _check_e2e(draft: Draft, top: PathReporter) -> None:
    """Report Cluster API's end-to-end tests in providers whose clusters they do not know."""
    required = {
        "infrastructure": draft.spec.infrastructure is not None,
        "kinds for machines": draft.spec.machines is not False,
        "the contract v1beta2": "v1beta2" in draft.spec.contracts,
        "kubeadm for control planes and bootstrap": not (
            draft.spec.bootstrap or draft.spec.control_plane
        ),
    }
    for condition in (name for name, is_met in required.items() if not is_met):
        message = f"Cluster API's end-to-end tests require {condition}"
        top.add_error("end-to-end-tests", message, "Remove the key.", "e2e")


def _check_roles(draft: Draft, reporter: PathReporter) -> None:
    """Report the roles that an infrastructure provider needs but no kind implements."""
    roles = {each.spec.implements for each in draft.kinds_of(_INFRASTRUCTURE)}
    needed = _NEEDED if draft.spec.machines is not False else _NEEDED[:1]
    for role in (each for each in needed if each not in roles):
        message, hint = f"no kind implements {role}", f"Add one: `implements: {role}`."
        if role == "InfraMachine":
            kinds = draft.kinds_of(_INFRASTRUCTURE)
            others = [each.name for each in kinds if _needs_machines(each)]
            first = f"remove {join_names(others)} and " if others else ""
            message += f", which is required by {join_names(others)}" if others else ""
            hint += f" If no Machines run on the infrastructure, {first}write `machines: false`."
        reporter.add_error_at_key("kind-missing", message, hint)


def _needs_machines(kind: DraftKind) -> bool:
    """Return whether objects of an infrastructure kind belong to Machines, or have some."""
    role = kind.spec.implements
    is_pool_of_machines = role == "InfraMachinePool" and MACHINES in kind.features
    return role in ROLES_OF_MACHINES or is_pool_of_machines


def _check_excluded(draft: Draft, top: PathReporter) -> None:
    """Report kinds that need machines in a provider whose infrastructure has none."""
    if draft.spec.infrastructure is None:
        message = "without a section infrastructure there are no machines"
        top.add_error_at_key("section-unused", message, "Remove it.", "machines")
    hint = "Remove it, or the kind."
    for kind in draft.kinds:
        role = kind.spec.implements
        if _needs_machines(kind):
            message = f"{quote(kind.name)} implements {role}, but the provider has no machines"
        elif is_machine_based(kind.spec):
            message = f"{quote(kind.name)} consists of Machines, but the provider has no machines"
        else:
            continue
        top.add_error_at_key("machines-excluded", message, hint, "machines")


def check_extension(draft: Draft, top: PathReporter) -> None:
    """Report hooks that are listed twice (RX-05) or share a name (RX-04)."""
    if draft.spec.runtime_extension is None:
        return
    hooks: set[str] = set()
    names: set[str] = set()
    reporter = top.at("runtimeExtension", "hooks")
    for index, (hook, name) in enumerate((each.hook, each.name) for each in draft.hooks):
        if hook in hooks:
            message = f"duplicate hook {quote(hook)}"
            hint = "Keep one: your code can tell patches apart by their settings."
            reporter.add_error("RX-05", message, hint, index)
        elif name in names:
            message = f"{quote(name)} is the name of another hook"
            reporter.add_error("RX-04", message, "Choose another `name`.", index)
        hooks.add(hook)
        names.add(name)


def check_components(draft: Draft, top: PathReporter) -> None:
    """Report components that clusterctl cannot install (CC-51, CC-70).

    Ids: ``component-type``, ``component-repeated``, ``section-unused`` and ``spec-repeated``.
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
        # CC-70: clusterctl looks for cluster templates only in infrastructure providers.
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
    """Report namespaces that cannot be used as a prefix of a Service name (CC-31).

    Ids: ``namespace-too-long`` and ``namespace-digit``.
    """
    admitting = _admitting(draft)
    for section, *_ in draft.components:
        # The names of Services have different lengths, and what calls the manager determines the
        # longest one.
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
    """Report strings in ``value``, at any depth, that clusterctl would change.

    Id: ``clusterctl-variable``.  The reporter's path is the path to ``value``.  clusterctl treats
    ``${X}`` as a variable that the user must set, and replaces ``$$`` with ``$``, even in a CRD's
    descriptions and patterns.
    """
    # Only the values, because the allowed forms of keys exclude a dollar sign.
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
