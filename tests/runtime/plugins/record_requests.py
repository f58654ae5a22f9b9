"""Records what managers request; as a pytest plugin, while the tests of a repository run.

The plugin is imported as a top-level module, as generated repositories have a package ``tests`` of
their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
    WatchEvent,
)
from capsmith_runtime.kube.diagnostics import Check
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.kube.process import EndProcess, SetAlarm, exit_process, set_no_alarm
from capsmith_runtime.manager import Manager
from capsmith_runtime.options import Options

FILE = "RECORDED_REQUESTS"
"""The environment variable that names the file to write."""
Row = tuple[str, ...]
"""A request: label, verb, group, resource, name, "own" or "", module, function, method."""
_ROWS = pytest.StashKey[set[Row]]()


class RecordingClient:
    """Passes all on to another client; methods are no coroutines, so that they see their caller."""

    def __init__(self, client: KubeClient, label: str, own_namespace: str, rows: set[Row]) -> None:
        self._client = client
        self._label = label
        self._own_namespace = own_namespace
        self._rows = rows

    def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Awaitable[Page]:
        self._record("list", resource, selection.namespace)
        return self._client.list_page(resource, selection, limit=limit, token=token)

    def watch(
        self, resource: ResourceType, selection: Selection, *, resource_version: str
    ) -> AsyncGenerator[WatchEvent, None]:
        self._record("watch", resource, selection.namespace)
        return self._client.watch(resource, selection, resource_version=resource_version)

    def get(self, resource: ResourceType, key: NamespacedName) -> Awaitable[JSON]:
        self._record("get", resource, *key)
        return self._client.get(resource, key)

    def create(self, resource: ResourceType, obj: JSON) -> Awaitable[JSON]:
        self._record("create", resource, obj["metadata"].get("namespace", ""))
        return self._client.create(resource, obj)

    def update(self, resource: ResourceType, obj: JSON) -> Awaitable[JSON]:
        metadata = obj["metadata"]
        self._record("update", resource, metadata.get("namespace", ""), metadata["name"])
        return self._client.update(resource, obj)

    def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> Awaitable[JSON]:
        self._record("patch", resource, *key)
        return self._client.patch(resource, key, body, resource_version=resource_version)

    def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> Awaitable[JSON]:
        self._record("patch", resource, *key, subresource="/status")
        return self._client.patch_status(resource, key, body, resource_version=resource_version)

    def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> Awaitable[JSON]:
        metadata = obj["metadata"]
        # An apply creates what does not exist, which needs both verbs.
        for verb in ("patch", "create"):
            self._record(verb, resource, metadata.get("namespace", ""), metadata["name"])
        return self._client.apply(resource, obj, force=force)

    def delete(
        self, resource: ResourceType, key: NamespacedName, *, uid: str = ""
    ) -> Awaitable[None]:
        self._record("delete", resource, *key)
        return self._client.delete(resource, key, uid=uid)

    def served_versions(self, group: str) -> Awaitable[tuple[str, ...]]:
        return self._client.served_versions(group)

    def close(self) -> Awaitable[None]:
        return self._client.close()

    def _record(
        self,
        verb: str,
        resource: ResourceType,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> None:
        caller = sys._getframe(2)
        self._rows.add(
            (
                self._label,
                verb,
                resource.group,
                resource.plural + subresource,
                "" if resource.namespaced else name,
                "own" if resource.namespaced and namespace == self._own_namespace else "",
                caller.f_globals["__name__"],
                caller.f_code.co_qualname,
                sys._getframe(1).f_code.co_name,
            )
        )


@contextlib.contextmanager
def recorded_requests() -> Iterator[set[Row]]:
    """Yield a set that gets the requests of each manager made inside.  It cannot be nested."""
    original = Manager.__init__
    rows: set[Row] = set()

    def recording(
        self: Manager,
        component: Component,
        options: Options,
        client: KubeClient,
        metrics: Metrics,
        end_process: EndProcess = exit_process,
        *,
        checks: Mapping[str, Check] = {},
        set_alarm: SetAlarm = set_no_alarm,
    ) -> None:
        recorder = RecordingClient(client, component.label, options.own_namespace, rows)
        original(
            self,
            component,
            options,
            cast(KubeClient, recorder),
            metrics,
            end_process,
            checks=checks,
            set_alarm=set_alarm,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Manager, "__init__", recording)
        yield rows


def write_rows(rows: set[Row]) -> None:
    """Write recorded requests to the file that the environment names."""
    Path(os.environ[FILE]).write_text(json.dumps(sorted(rows)), encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    stack = contextlib.ExitStack()
    config.stash[_ROWS] = stack.enter_context(recorded_requests())
    config.add_cleanup(stack.close)


def pytest_sessionfinish(session: pytest.Session) -> None:
    write_rows(session.config.stash[_ROWS])
