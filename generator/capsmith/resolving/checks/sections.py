"""Check that sections exist and have all required roles, and that hook names are unique."""

from __future__ import annotations

from typing import Final

from capsmith.provider.draft import Draft
from capsmith.provider.sections import SECTION_TYPES
from capsmith.yamldoc.quote import join_names, quote
from capsmith.yamldoc.reporter import PathReporter

_SECTION: Final = "bootstrap"


_TAKEN: Final = "KubeadmConfig"


_ITSELF: Final = "kubeadm"
"""Name of the kubeadm bootstrap provider, to which KubeadmConfig belongs."""


def check_bootstrap(draft: Draft, top: PathReporter) -> None:
    """Report ``kind-taken`` for a KubeadmConfig in the group of the kubeadm bootstrap provider.

    Core gives templates of that kind special treatment (BC-17).
    """
    for kind in (each.name for each in draft.kinds_of(_SECTION)):
        if kind.lower() != _TAKEN.lower():
            continue
        if draft.groups[_SECTION] == SECTION_TYPES[_SECTION].group:
            message = f"the kubeadm bootstrap provider already has {quote(kind)} in this group"
            hint = "Choose another name, or `groups: {bootstrap: …}` with a domain of your own."
            here = top.at(_SECTION, kind)
            if draft.spec.name == _ITSELF:
                hint = "Install this provider in reporter of the kubeadm bootstrap provider only."
                here.add_warning("kind-taken", message, hint)
            else:
                here.add_error_at_key("kind-taken", message, hint)


_NEEDED = {"infrastructure": ("InfraCluster", "InfraMachine")}


def check_sections(draft: Draft, top: PathReporter) -> None:
    """Report a description without sections, and sections that lack a required kind.

    Ids: ``section-missing``, ``kind-missing`` and ``credentials-unused``.
    """
    if not draft.sections:
        message = "the provider has no kinds and no runtime extension"
        hint = f"Add a section: {join_names(SECTION_TYPES)}."
        top.add_error("section-missing", message, hint)
    for section, roles in _NEEDED.items():
        if section in {each.section for each in draft.sections}:
            _check_roles(draft, section, roles, top.at(section))
    if draft.identities and draft.spec.infrastructure is None:
        message = "credentials require infrastructure, but the section has no kinds"
        top.add_error_at_key("credentials-unused", message, "Remove them.", "credentials")


def _check_roles(
    draft: Draft, section: str, roles: tuple[str, ...], reporter: PathReporter
) -> None:
    for role in roles:
        kinds = [each.name for each in draft.kinds_of(section) if each.spec.implements == role]
        if not kinds:
            message = f"no kind implements {role}"
            reporter.add_error_at_key("kind-missing", message, f"Add one: `implements: {role}`.")


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
