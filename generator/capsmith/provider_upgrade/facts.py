"""An upgrade plan, as JSON data and as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from capsmith.contract.model import FieldChange
from capsmith.provider.model import Provider
from capsmith.provider_upgrade.changes import KindChanges, Step, list_kind_changes
from capsmith.provider_upgrade.manual_steps import ManualStep
from capsmith.provider_upgrade.stages import Stage, find_in_place_upgrade, list_costs, list_stages

Data = dict[str, Any]
_REMARKS = {"done": "", "preview": " (preview)", "conflicts": " (unfinished: conflicts)"}


def describe_step(provider: Provider, step: Step) -> Data:
    """Return a step's stages as JSON data: which are complete, and which is next."""
    in_place_upgrade = find_in_place_upgrade(provider, step)
    all_stages = list_stages(provider, step)
    return {
        "from": step.old.version,
        "to": step.new.version,
        "stages": [_stage(stage) for stage in all_stages],
        "next": next((stage.command for stage in all_stages if not stage.done), ""),
        "simpler": (
            {"command": in_place_upgrade.command, "costs": list(in_place_upgrade.costs)}
            if in_place_upgrade is not None
            else None
        ),
    }


def describe_upgrade(
    provider: Provider, step: Step, manual_steps: Iterable[ManualStep], *, in_place: bool
) -> Data:
    """Return an upgrade plan as JSON data.

    ``in_place`` is true if API versions keep their names.
    """
    facts = describe_step(provider, step)
    if in_place:  # there are no stages then
        facts |= {"stages": [], "next": "", "simpler": None}
    return facts | {
        "costs": list(list_costs(provider, step)) if in_place else [],
        "kinds": [_kind(each) for each in list_kind_changes(provider, step)],
        "byHand": [_hand(each) for each in manual_steps],
    }


def format_facts(facts: Data) -> Iterator[str]:
    """Yield the plan as lines for a terminal."""
    yield f"contract {facts['from']} -> {facts['to']}"
    yield from _format_stages(facts["stages"], _REMARKS[facts["state"]])
    for cost in facts["costs"]:
        yield f"  - {cost}"
    yield "fields that moved or were removed (docs/upgrading.md lists all changes):"
    for kind in facts["kinds"]:
        yield from _format_kind(kind)
    yield "left to you and to the users of the provider:"
    for hand in facts["byHand"]:
        when = f", {hand['when']}" if hand["when"] else ""
        of = f"{', '.join(hand['kinds'])}: " if hand["kinds"] else ""
        yield f"  {hand['who']}{when}: {of}{hand['what']}"
        for place in hand["places"]:
            yield f"    {place}"
    yield "  Only manifests in the folders of samples, templates and overlays were searched."
    if facts["state"] == "conflicts":
        yield "next: resolve the conflicts that are listed above, then capsmith update --continue"
    elif facts["next"]:
        yield f"next, once that is released: {facts['next']}"


def _format_stages(stages: list[Data], remark: str) -> Iterator[str]:
    latest = max((place for place, stage in enumerate(stages) if stage["done"]), default=0)
    for place, stage in enumerate(stages):
        is_pending = bool(remark) and place == latest
        mark = "~" if is_pending else "x" if stage["done"] else " "
        series = f"{stage['release']}: " if stage["release"] else ""
        command = f" ({stage['command']})" if not stage["done"] else ""
        yield f"  [{mark}] {series}{stage['title']}{command}{remark if is_pending else ''}"
        if place >= latest:
            yield from (f"      - {demand}" for demand in stage["asks"])


def _format_kind(kind: Data) -> Iterator[str]:
    paths = [_format_change(change) for change in kind["changes"] if _is_elsewhere(change)]
    if paths:
        yield f"  {kind['kind']}: {', '.join(paths)}"


def _is_elsewhere(change: Data) -> bool:
    return bool(change["old"] != change["new"])


def _format_change(change: Data) -> str:
    if change["old"] and change["new"]:
        return f"{change['old']} -> {change['new']}"
    return f"{change['old'] or change['new']} {change['change']}"


def _stage(stage: Stage) -> Data:
    return {
        "title": stage.title,
        "command": stage.command,
        "release": stage.series,
        "contracts": list(stage.contracts),
        "asks": list(stage.asks),
        "done": stage.done,
    }


def _kind(changes: KindChanges) -> Data:
    return {
        "kind": str(changes.resource.kind),
        "template": str(changes.template.kind) if changes.template is not None else "",
        "changes": [_change(change) for change in changes.changes],
    }


def _change(change: FieldChange) -> Data:
    return {
        "change": change.kind.value,
        "old": change.old,
        "new": change.new,
        "conversion": change.conversion.value,
        "lossless": change.lossless,
        "who": [actor.value for actor in change.who],
        "rules": list(change.rules),
        "note": change.note,
    }


def _hand(hand: ManualStep) -> Data:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(hand).items()}
