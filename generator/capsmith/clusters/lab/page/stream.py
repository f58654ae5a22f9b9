"""Messages to one browser tab: first everything that it shows, then the changes."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from capsmith.clusters.conditions import JSON, get_mapping, get_sequence
from capsmith.clusters.hiding import KeyHider, hide_in_line
from capsmith.clusters.lab.page.actions import Actions, NoActions
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.model.details import describe_object
from capsmith.clusters.lab.page.model.log_lines import LogFilter, describe_line, merge_lines
from capsmith.clusters.lab.page.model.reason import describe_reason
from capsmith.clusters.lab.page.model.store import ObjectStore, SimulatedServer
from capsmith.clusters.lab.page.model.time_axis import describe_time, get_history_revision
from capsmith.clusters.lab.page.model.tree import (
    RunningCalls,
    TreeQuery,
    TreeRow,
    build_tree,
    compare_rows,
    count_states,
)
from capsmith.clusters.lab.page.sources import LogReader

MAX_LINES = 500
"""Maximum number of log lines in one message; older lines are left out."""
_MAX_OPEN = 1_000
_SLOW_SECONDS = 5.0
"""Duration from which on a running call is shown in the row of its object."""


class Source(Protocol):
    """Provides the page's data that is not in API server objects."""

    def find_logs(self) -> Mapping[str, Path]:
        """Return the path to each component's log."""

    def describe(self) -> JSON:
        """Return the processes' state, as JSON data."""

    def read_servers(self) -> tuple[SimulatedServer, ...] | None:
        """Return the simulated cloud's servers; None if there is no simulated cloud."""


@dataclass(frozen=True)
class StreamRequest:
    """What one browser tab of the lab's page shows: a tree, an object's details, and logs."""

    tree: TreeQuery = field(default_factory=TreeQuery)
    selected: str = ""
    """Id of the object shown in detail; empty if there is none."""
    logs: LogFilter = field(default_factory=LogFilter)

    @classmethod
    def from_data(cls, data: object) -> StreamRequest:
        """Return the request described by JSON data from a browser.

        Unknown keys are ignored, and a value of the wrong type is converted or replaced with the
        default.
        """
        given = get_mapping(data)
        selected = str(given.get("selected") or "")
        name = selected.rpartition("/")[2] if given.get("onlySelected") else ""
        return cls(
            TreeQuery(
                frozenset(str(each) for each in get_sequence(given.get("open"))[:_MAX_OPEN]),
                str(given.get("search") or ""),
                bool(given.get("waitingOnly")),
            ),
            selected,
            LogFilter(str(given.get("component") or ""), name),
        )


class ViewStream:
    """Produces the messages for one tab. Only one thread may use it at a time."""

    def __init__(
        self,
        cluster: WatchedCluster,
        source: Source,
        request: StreamRequest,
        actions: Actions | None = None,
    ) -> None:
        """Define what a tab receives. If ``actions`` is None, the page is read-only."""
        self._actions = actions or NoActions()
        self._cluster = cluster
        self._source = source
        self._request = request
        self._rows: list[TreeRow] | None = None
        self._sent: JSON = {}
        self._running: frozenset[tuple[tuple[str, str], float]] = frozenset()
        self._revision = -1
        self._object_revision = (-1, "")
        self._axis_revision = (-1, -1)
        self._reader: LogReader | None = None
        self._shown: dict[str, bool] = {}
        self._keys: dict[str, KeyHider] = defaultdict(KeyHider)

    def next_message(self) -> JSON:
        """Return the changes since the last call, by part of the page; empty if there are none.

        The first message has all parts.
        """
        message: JSON = {}
        with self._cluster.read() as store:
            running = store.calls.list_running(time.time() - _SLOW_SECONDS)
            begins = frozenset((key, call.begin) for key, call in running.items())
            if store.revision != self._revision or begins != self._running:
                self._revision, self._running = store.revision, begins
                message |= self._describe_tree(store, running)
                message |= self._select_changed("counts", count_states(store))
                message |= self._select_changed("problems", _list_problems(store))
                message |= self._select_changed("progress", _sum_progress(store))
            message |= self._describe_selected(store)
            message |= self._select_changed("actions", self._list_actions(store))
        message |= self._select_changed("lab", self._source.describe())
        message |= self._read_logs()
        return message

    def _describe_tree(self, store: ObjectStore, running: RunningCalls) -> JSON:
        rows = build_tree(store, self._request.tree, running)
        if self._rows is None:
            changed = {"rows": [row.to_data() for row in rows], "order": [row.id for row in rows]}
        else:
            changed = compare_rows(self._rows, rows)
        self._rows = rows
        return {"tree": changed} if changed else {}

    def _describe_selected(self, store: ObjectStore) -> JSON:
        """Return the selected object and its time axis, each if it has changed."""
        if not self._request.selected:
            return {}
        found = store.find(self._request.selected)
        if found is None:
            return self._select_changed("object", None)
        message: JSON = {}
        # Includes changes of the objects it refers to. Comparing revisions is cheaper than
        # comparing content.
        revision = store.revision, get_history_revision(store, store.calls, found)
        if revision != self._axis_revision:
            self._axis_revision = revision
            message |= self._select_changed("time", describe_time(store, store.calls, found))
        # The reason depends on other objects, too, such as an identity.
        object_revision = found.revision, describe_reason(store, found)
        if object_revision != self._object_revision:
            self._object_revision = object_revision
            message |= self._select_changed("object", describe_object(store, found))
        return message

    def _list_actions(self, store: ObjectStore) -> JSON:
        found = store.find(self._request.selected)
        of_object = self._actions.list_for_object(store, found) if found is not None else []
        return {
            "lab": [each.to_data() for each in self._actions.list_for_lab()],
            "object": [each.to_data() for each in of_object],
        }

    def _select_changed(self, part: str, data: object) -> JSON:
        if part in self._sent and self._sent[part] == data:
            return {}
        self._sent[part] = data
        return {part: data}

    def _read_logs(self) -> JSON:
        logs = self._source.find_logs()
        if self._reader is None:
            self._reader = LogReader(logs)
        found = []
        for name, read in self._reader.read(logs):
            new = self._keys[name].hide(read)
            selected = self._request.logs.select(name, new, is_shown=self._shown.get(name, False))
            self._shown[name] = bool(selected) and selected[-1] is new[-1]
            found.append((name, selected[-MAX_LINES:]))
        lines = merge_lines(found, datetime.now())[-MAX_LINES:]
        return {"logs": [describe_line(name, line) for name, line in lines]} if lines else {}


def _sum_progress(store: ObjectStore) -> JSON | None:
    """Return how many objects of incomplete lists are read; None if all lists are complete."""
    if not store.progress:
        return None
    read, total = (sum(each) for each in zip(*store.progress.values(), strict=True))
    return {"read": read, "total": total}


def _list_problems(store: ObjectStore) -> list[JSON]:
    return [
        {"source": source, "message": hide_in_line(message)}
        for source, message in sorted(store.problems.items())
    ]
