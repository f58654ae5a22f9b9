"""Large objects of a user are read in threads, a few at a time, and cost little memory."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any

import pytest

from capsmith_runtime.api.serialization import encode_differences
from capsmith_runtime.kube.http_server import Request
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from capsmith_runtime.webhook.large_requests import LARGE_BYTES, LargeRequests, RequestsBusyError
from tests.runtime.admission.requests import GROUP, author, handler_of, review, widget

MAIN = threading.main_thread()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedSpec:
    """A spec that notes the thread which decodes it."""

    size: str
    zone: str | None = None
    threads: list[threading.Thread] = field(
        default_factory=list, compare=False, metadata={"json": "no field of the object"}
    )
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.threads.append(threading.current_thread())


@pytest.mark.parametrize("path", ["validate", "mutate"])
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
async def test_a_large_object_is_decoded_in_a_thread(path: str, operation: str) -> None:
    large = widget({"size": "s", "tags": ["x"] * LARGE_BYTES})
    old = widget({"size": "m", "tags": ["x"] * LARGE_BYTES})
    result: Any = () if path == "validate" else (lambda obj: replace(obj.spec, zone="z"))
    cls = author(result)
    body = review(
        operation, *{"CREATE": (large,), "UPDATE": (large, old)}.get(operation, (None, old))
    )
    handler = handler_of(cls, FakeApi("v1beta2", Manifests(())), spec=TracedSpec)
    route = handler.routes[f"/{path}/widgets.{GROUP}"]

    response = await route(Request("POST", f"/{path}", json.dumps(body).encode()))

    assert json.loads(response.body)["response"]["allowed"] is True
    specs: list[Any] = [obj.spec for obj in cls.seen]
    assert all(MAIN is not spec.threads[0] for spec in specs)
    assert bool(cls.seen) is (operation != "DELETE" or path == "validate")


def test_only_replaced_fields_are_encoded() -> None:
    before = TracedSpec(size="s", tags=("a",))
    after = replace(before, zone="z")

    assert encode_differences(before, after) == ({}, {"zone": "z"})


async def test_large_requests_are_admitted_in_order_within_the_limit() -> None:
    requests, admitted, done = LargeRequests(3 * LARGE_BYTES), list[int](), asyncio.Event()

    async def handle(number: int, size: int) -> None:
        async with requests.admit(size, 60.0):
            admitted.append(number)
            if number == 0:
                await done.wait()

    sizes = (2 * LARGE_BYTES, 100 * LARGE_BYTES, LARGE_BYTES, 1)
    tasks = [asyncio.create_task(handle(number, size)) for number, size in enumerate(sizes)]
    while len(admitted) < 2:
        await asyncio.sleep(0)
    # The third would fit, but the second, which would otherwise never be admitted, waits for all.
    assert admitted == [0, 3]
    done.set()
    await asyncio.gather(*tasks)
    assert admitted == [0, 3, 1, 2]


async def test_a_request_that_waits_too_long_is_refused() -> None:
    requests = LargeRequests(LARGE_BYTES)
    async with requests.admit(LARGE_BYTES, 60.0):
        with pytest.raises(RequestsBusyError):
            async with requests.admit(LARGE_BYTES, 0.0):
                pytest.fail("two large requests were admitted")
    async with requests.admit(LARGE_BYTES, 0.0):
        pass  # the request that was refused holds no room


async def test_the_api_server_repeats_a_request_that_was_refused() -> None:
    started, done = asyncio.Event(), asyncio.Event()

    async def validate(*objects: Any) -> tuple[()]:
        started.set()
        await done.wait()
        return ()

    cls = author(())
    cls.validate_create = validate  # type: ignore[method-assign, assignment]  # asynchronous
    body = json.dumps(review("CREATE", widget({"size": "s" * 2 * 1024 * 1024}))).encode()
    handler = handler_of(cls, FakeApi("v1beta2", Manifests(())), timeout_seconds=1)
    request = Request("POST", "/validate", body)
    task = asyncio.create_task(handler.validate(request))
    await started.wait()

    response = await handler.validate(request)

    assert (response.status, response.retry_after) == (HTTPStatus.TOO_MANY_REQUESTS, 1)
    done.set()
    await task
