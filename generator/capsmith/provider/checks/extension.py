"""The runtime extension: can core call every hook by a name of its own?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from capsmith.provider import derive
from capsmith.provider.extension import SERVICE, handler_name
from capsmith.safetext import DnsLabel
from capsmith.spec.place import Place
from capsmith.spec.quote import shown

if TYPE_CHECKING:
    from capsmith.spec.model import ProviderSpec


def check_extension(spec: ProviderSpec, top: Place) -> None:
    """Ids RX-04, RX-05 and ``namespace-too-long``."""
    if spec.runtime_extension is None:
        return
    hooks: set[str] = set()
    names: set[str] = set()
    place = top.at("runtimeExtension", "hooks")
    for index, each in enumerate(spec.runtime_extension.hooks):
        hook, given = (each, None) if isinstance(each, str) else (each.hook, each)
        name = handler_name(hook, given)
        if hook in hooks:
            message = f"{shown(hook)} stands here twice"
            hint = "keep one: your code can tell patches apart by their settings"
            place.error("RX-05", message, hint, index)
        elif name in names:
            message = f"{shown(name)} is the name of another hook"
            place.error("RX-04", message, "choose another `name`", index)
        hooks.add(hook)
        names.add(name)
    _service(spec, top)


def _service(spec: ProviderSpec, top: Place) -> None:
    """The Service bears the namespace in its name, as all that clusterctl installs (CC-31)."""
    namespace = derive.namespace(spec, "runtimeExtension")
    longest = DnsLabel.limit - len(SERVICE) - 1
    if longest < len(namespace) <= DnsLabel.limit:
        given = "runtimeExtension" in (spec.namespaces or {})
        where = ("namespaces", "runtimeExtension") if given else ("name",)
        message = f"the Service `{namespace}-{SERVICE}` would have more than {DnsLabel.limit}"
        hint = f"add `namespaces: {{runtimeExtension: …}}` of at most {longest} characters"
        top.error("namespace-too-long", f"{message} characters", hint, *where)
