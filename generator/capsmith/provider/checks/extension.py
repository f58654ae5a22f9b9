"""Check that core can call every hook of the runtime extension by a unique name."""

from __future__ import annotations

from capsmith.provider.draft import Draft
from capsmith.provider.extension import SERVICE
from capsmith.safetext import DnsLabel
from capsmith.yamldoc.place import Place
from capsmith.yamldoc.quote import shown


def check_extension(draft: Draft, top: Place) -> None:
    """Report RX-04, RX-05 and ``namespace-too-long``."""
    if draft.spec.runtime_extension is None:
        return
    hooks: set[str] = set()
    names: set[str] = set()
    place = top.at("runtimeExtension", "hooks")
    for index, (hook, name) in enumerate((each.hook, each.name) for each in draft.hooks):
        if hook in hooks:
            message = f"{shown(hook)} stands here twice"
            hint = "Keep one: your code can tell patches apart by their settings."
            place.error("RX-05", message, hint, index)
        elif name in names:
            message = f"{shown(name)} is the name of another hook"
            place.error("RX-04", message, "Choose another `name`.", index)
        hooks.add(hook)
        names.add(name)
    _service(draft, top)


def _service(draft: Draft, top: Place) -> None:
    """Check the length of the Service's name, which begins with the namespace (CC-31)."""
    namespace = draft.namespaces["runtimeExtension"]
    longest = DnsLabel.limit - len(SERVICE) - 1
    if longest < len(namespace) <= DnsLabel.limit:
        given = "runtimeExtension" in (draft.spec.namespaces or {})
        where = ("namespaces", "runtimeExtension") if given else ("name",)
        message = f"the Service `{namespace}-{SERVICE}` would have more than {DnsLabel.limit}"
        hint = f"Add `namespaces: {{runtimeExtension: …}}` of at most {longest} characters."
        top.error("namespace-too-long", f"{message} characters", hint, *where)
