"""Bootstrap configurations: does a kind take the name of a provider's that is installed beside?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from capsmith.provider import derive
from capsmith.provider.sections import SECTION_TYPES
from capsmith.spec.place import Place
from capsmith.spec.quote import shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec

_SECTION: Final = "bootstrap"
_TAKEN: Final = "KubeadmConfig"


def check_bootstrap(spec: ProviderSpec, top: Place) -> None:
    """Id ``kind-taken``; core also treats templates of that kind in its own way (BC-17)."""
    for section, kind, _ in spec.kinds():
        if section != _SECTION or kind.lower() != _TAKEN.lower():
            continue
        if derive.group(spec, _SECTION) == SECTION_TYPES[_SECTION].group:
            message = f"{shown(kind)} is the kubeadm bootstrap provider's, in this very group"
            hint = "choose another name, or `groups: {bootstrap: …}` with a domain of your own"
            top.at(_SECTION, kind).error_at_key("kind-taken", message, hint)
