"""The time that an object spent in each step, from its creation until it was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise

from capsmith.clusters.conditions import JSON, get_mapping, list_conditions, select_current
from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.page.model.calls import AuthorCall, CallHistory, ObjectHistory
from capsmith.clusters.lab.page.model.store import ObjectStore, StoredObject, find_referenced
from capsmith.clusters.lab.page.model.summary import NEUTRAL, OK

CORE, QUEUE, AUTHOR, CLOUD = "core", "provider's queue", "author's call", "cloud"
_WAITING = "Waiting"
_MAX_SPANS = 60
_STEPS = {
    "BootstrapConfigReady": "bootstrap provider",
    "InfrastructureReady": "infrastructure provider",
    "NodeReady": "node",
    "NodeHealthy": "node",
    "ControlPlaneInitialized": "control plane",
    "ControlPlaneAvailable": "control plane",
    "Ready": CORE,
}
"""Conditions of core's objects that become true one after the other, and who makes them so."""


@dataclass(frozen=True)
class Span:
    """A period on the time axis, such as a wait or a call to author code."""

    object: str
    """Kind and name of the object that the period belongs to."""
    who: str
    what: str
    begin: float
    """Start, in seconds since the epoch."""
    seconds: float | None
    """Duration in seconds; None if the period has not ended."""


def describe_time(store: ObjectStore, history: CallHistory, found: StoredObject) -> JSON:
    """Return the time axis for an object and the objects it refers to, with author calls."""
    spans: list[Span] = []
    calls: list[JSON] = []
    for each in (found, *find_referenced(store, found)):
        known = _find_history(history, each)
        spans += _list_spans(each, known)
        calls += [{"object": _title(each), **asdict(call)} for call in known.calls] if known else []
    return {
        "created": _created(found),
        "spans": [asdict(each) for each in spans[-_MAX_SPANS:]],
        "calls": calls,
    }


def get_history_revision(store: ObjectStore, history: CallHistory, found: StoredObject) -> int:
    """Return a number that grows whenever the calls shown by :func:`describe_time` change."""
    objects = (found, *find_referenced(store, found))
    known = [_find_history(history, each) for each in objects]
    return sum(each.revision for each in known if each is not None)


def _list_spans(found: StoredObject, history: ObjectHistory | None) -> list[Span]:
    if history is not None and (history.calls or history.waits):
        return list(_spans_of_calls(found, history))
    return list(_spans_of_conditions(found))


def _spans_of_calls(found: StoredObject, history: ObjectHistory) -> Iterator[Span]:
    """Yield calls, and who was waited for between them."""
    title, calls = _title(found), list(history.calls)
    first = calls[0].begin if calls else None
    yield from _spans_before_calls(found, history, first)
    for number, call in enumerate(calls, 1):
        after = calls[number] if number < len(calls) else None
        method = call.method.rpartition(".")[2]
        # Most errors begin with the type of the exception.
        result = "" if call.error.startswith(f"{call.result}:") else call.result
        what = " ".join(filter(None, (method, result, call.error)))
        yield Span(title, AUTHOR, what, call.begin, call.seconds)
        end = call.begin + (call.seconds or 0.0)
        who, what = _explain_gap(call)
        is_last = after is None
        if call.seconds is None or not who or (is_last and found.summary.tone in (OK, NEUTRAL)):
            continue
        what = found.summary.waiting or what if is_last else what
        yield Span(title, who, what, end, max(0.0, after.begin - end) if after else None)


def _explain_gap(call: AuthorCall) -> tuple[str, str]:
    """Return who is waited for after a call and why; empty if nothing is waited for."""
    if call.result == _WAITING:
        again = "" if call.requeue is None else f", asked again after {call.requeue:g} s"
        return CLOUD, f"the author's code waits{again}"
    if call.error:
        return QUEUE, "retry with back-off after the error"
    return "", ""


def _spans_before_calls(
    found: StoredObject, history: ObjectHistory, first: float | None
) -> Iterator[Span]:
    """Yield what an object waited for before the first call; ``first`` is None without one."""
    title, created = _title(found), _created(found)
    early = [each for each in history.waits if first is None or each.begin < first]
    marks = [(created, QUEUE, "first reconcile")]
    marks += [(each.begin, CORE, f"{each.reason}: {each.message}") for each in early]
    ends = [begin for begin, _, _ in marks[1:]]
    for (begin, who, what), end in zip(marks, [*ends, first], strict=True):
        yield Span(title, who, what, begin, None if end is None else max(0.0, end - begin))


def _spans_of_conditions(found: StoredObject) -> Iterator[Span]:
    """Yield the steps of an object of core, each of which ends when a condition becomes true."""
    title, created = _title(found), _created(found)
    conditions = select_current(list_conditions(found.data))
    done = sorted(
        (_seconds(each.since), each.type)
        for each in conditions
        if each.status == "True" and each.type in _STEPS and _seconds(each.since) >= created > 0
    )
    marks = [(created, ""), *done]
    for (begin, _), (end, type) in pairwise(marks):
        yield Span(title, _STEPS[type], f"until {type}", begin, end - begin)
    if found.summary.waiting:
        open_types = [each.type for each in conditions if each.status != "True"]
        who = next((who for type, who in _STEPS.items() if type in open_types), CORE)
        what = found.summary.waiting
        begins = [_seconds(each.since) for each in conditions if what.startswith(f"{each.type}:")]
        yield Span(title, who, what, max(marks[-1][0], *begins, 0.0), None)


def _find_history(history: CallHistory, found: StoredObject) -> ObjectHistory | None:
    key = "/".join(filter(None, (found.key.namespace, found.key.name)))
    return history.find(found.key.kind, key)


def _title(found: StoredObject) -> str:
    return hide_in_line(f"{found.key.kind}/{found.key.name}")


def _created(found: StoredObject) -> float:
    return _seconds(get_mapping(found.data.get("metadata")).get("creationTimestamp"))


def _seconds(time: object) -> float:
    try:
        return datetime.fromisoformat(str(time)).timestamp()
    except (ValueError, OverflowError):
        return 0.0
