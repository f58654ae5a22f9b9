"""Objects of ``--apply`` before the managers start: all but those in the namespace of a run."""

from __future__ import annotations

from typing import Any

import pytest

from capsmith.clusters.processes.errors import RequestError
from capsmith.judge.running.servers import apply_prerequisite
from tests.unit.judge.running.memory import Memory, MemoryClient


def _host(**metadata: str) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Host", "metadata": {"name": "h", **metadata}}


def test_an_object_without_a_namespace_is_left_to_the_session() -> None:
    client = MemoryClient(Memory())
    apply_prerequisite(client, _host())
    apply_prerequisite(client, _host(namespace="racks"))
    apply_prerequisite(client, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
    assert set(client.memory.objects) == {("Host", "racks", "h"), ("Node", "", "n")}


def test_an_object_that_is_refused_is_named_with_what_to_do() -> None:
    memory = Memory()
    memory.admit = lambda old, new, dry_run: 'namespaces "racks" not found'
    with pytest.raises(RequestError) as caught:
        apply_prerequisite(MemoryClient(memory), _host(namespace="racks"))
    assert "Host h of --apply was not created" in str(caught.value)
    assert "Leave out metadata.namespace" in caught.value.finding.hint
