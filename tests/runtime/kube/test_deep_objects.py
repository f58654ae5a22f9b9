"""An object that is nested deeply does not keep the manager from reading all the others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from capsmith_runtime.errors import UnreachableError
from capsmith_runtime.kube.client import NamespacedName, Selection
from capsmith_runtime.kube.deep_json import DeepContainers, flatten, is_deep
from capsmith_runtime.kube.responses import parse, parse_event, parse_object, parse_page
from tests.runtime.support.following import WIDGET, Following, following
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually

T = TypeVar("T")
LEAST = 50
"""Number of levels that are always kept."""


def deep(depth: int, begin: str, end: str) -> str:
    return depth * begin + "1" + depth * end


def depth_of(value: Any) -> int:
    depth = 0
    while isinstance(value, (list, dict)):
        value = next(iter(value.values() if isinstance(value, dict) else value))
        depth += 1
    return depth


def call_below(frames: int, function: Callable[[], T]) -> T:
    """Return what a function returns that is called as deep in the stack as in a reconcile."""
    return call_below(frames - 1, function) if frames else function()


async def create(found: Following, namespace: str, name: str, value: str) -> None:
    """Create a Widget from JSON that Python may be unable to encode."""
    metadata = json.dumps({"name": name, "namespace": namespace})
    body = f'{{"apiVersion": "{WIDGET.api_version}", "kind": "Widget", "metadata": {metadata},'
    content = f'{body} "spec": {{"value": {value}}}}}'
    headers = {"Content-Type": "application/json"}
    session = found.client._session
    response = await session.post(WIDGET.path(namespace), content=content, headers=headers)
    assert response.status_code == 201, response.text[:200]


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")], ids=["list", "object"])
# The interpreter's limit is 1000, of which each caller has used another part.
@pytest.mark.parametrize("depth", [500, 620, 660, 700, 920, 950, 980, 1000, 9000])
async def test_the_others_are_listed_and_watched(
    api: Api, kubeconfig: Path, namespace: str, depth: int, brackets: tuple[str, str]
) -> None:
    value = deep(depth, *brackets)
    async with following(kubeconfig, Selection(namespace, managed_fields=False)) as found:
        await found.synced()
        await create(found, namespace, "deep", value)
        await asyncio.to_thread(api.create, namespace, "flat", color="red")
        await eventually(lambda: found.names() == {"deep", "flat"})
    async with following(kubeconfig, Selection(namespace)) as found:
        await found.synced()
        assert found.names() == {"deep", "flat"}
        cached = call_below(200, lambda: found.informer.get(NamespacedName(namespace, "deep")))
        assert cached is not None
        assert depth_of(cached["spec"]["value"]) in (depth, *range(LEAST, 101))
        await found.client.patch(WIDGET, NamespacedName(namespace, "deep"), {"spec": {"b": 1}})
        # Other tests list the objects of all namespaces with a decoder that cannot read this one.
        await found.client.delete(WIDGET, NamespacedName(namespace, "deep"))


async def test_deep_containers_are_null_in_all_responses() -> None:
    value = deep(5000, '{"a\\"[":[', "]}").encode()
    obj = b'{"metadata": {"name": "x"}, "before": "]}", "deep": %s, "after": [{}]}' % value
    page = b'{"metadata": {"resourceVersion": "1"}, "items": [%s, %s]}' % (obj, obj)
    event = b'{"type": "ADDED", "object": %s}' % obj
    for managed_fields in (True, False):
        items = (await parse(partial(parse_page, managed_fields=managed_fields), page)).items
        watched = await parse(partial(parse_event, managed_fields=managed_fields), event)
        for found in (*items, watched.object, await parse(parse_object, obj)):
            assert (found["before"], found["after"]) == ("]}", [{}])
            assert LEAST < depth_of(found["deep"]) < 101


@pytest.mark.parametrize("content", [b"", b'{"a": 1}', b'{"a": "[[[", "b": [[], {}]}'])
def test_what_is_not_deep_stays_as_it_is(content: bytes) -> None:
    assert flatten(content) == content
    assert DeepContainers().take_out(content) == content
    assert not is_deep(content)


def test_deep_containers_are_taken_out_and_put_back() -> None:
    value = deep(5000, '{"a\\"[":[', "]}").encode()
    content = b'{"before": "]}", "deep": [%s, %s], "after": [{}]}' % (value, value)
    containers = DeepContainers()
    taken = containers.take_out(content)
    assert is_deep(content)
    assert not is_deep(taken)
    assert containers.put_back(taken) == content
    text = json.dumps({"text": taken.decode()}).encode()
    found = json.loads(json.loads(containers.put_back(text))["text"])
    assert LEAST < depth_of(found["deep"]) < 101


@pytest.mark.parametrize(
    "content",
    # The last one took hours: each quote began another search for the end of a string.
    [100_000 * b"[", 5000 * b"[" + 5000 * b"}" + b"}", 5000 * b"[" + b'"' + 1_000_000 * b'\\"'],
    ids=lambda content: content[-2:].decode(),
)
async def test_what_is_no_json_counts_as_no_answer(content: bytes) -> None:
    with pytest.raises(UnreachableError):
        await parse(parse_object, content)
