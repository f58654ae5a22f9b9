"""Check the names of bootstrap configurations against providers that are installed beside."""

from __future__ import annotations

from typing import Final

from capsmith.provider.draft import Draft
from capsmith.provider.sections import SECTION_TYPES
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import shown

_SECTION: Final = "bootstrap"
_TAKEN: Final = "KubeadmConfig"
_ITSELF: Final = "kubeadm"
"""The name of the provider that has that kind."""


def check_bootstrap(draft: Draft, top: Place) -> None:
    """Report ``kind-taken``; core also treats templates of that kind in its own way (BC-17)."""
    for kind in (each.name for each in draft.kinds_of(_SECTION)):
        if kind.lower() != _TAKEN.lower():
            continue
        if draft.groups[_SECTION] == SECTION_TYPES[_SECTION].group:
            message = f"the kubeadm bootstrap provider already has {shown(kind)} in this group"
            hint = "Choose another name, or `groups: {bootstrap: …}` with a domain of your own."
            here = top.at(_SECTION, kind)
            if draft.spec.name == _ITSELF:
                hint = "Install this provider in place of the kubeadm bootstrap provider only."
                here.warning("kind-taken", message, hint)
            else:
                here.error_at_key("kind-taken", message, hint)
