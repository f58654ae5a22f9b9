"""Check that core can call every hook of the runtime extension by a unique name."""

from __future__ import annotations

from capsmith.provider.draft import Draft
from capsmith.yamldoc.quote import shown
from capsmith.yamldoc.reporter import Place


def check_extension(draft: Draft, top: Place) -> None:
    """Report RX-04 and RX-05."""
    if draft.spec.runtime_extension is None:
        return
    hooks: set[str] = set()
    names: set[str] = set()
    place = top.at("runtimeExtension", "hooks")
    for index, (hook, name) in enumerate((each.hook, each.name) for each in draft.hooks):
        if hook in hooks:
            message = f"duplicate hook {shown(hook)}"
            hint = "Keep one: your code can tell patches apart by their settings."
            place.error("RX-05", message, hint, index)
        elif name in names:
            message = f"{shown(name)} is the name of another hook"
            place.error("RX-04", message, "Choose another `name`.", index)
        hooks.add(hook)
        names.add(name)
