"""Slow webhooks leave room for the others."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from pathlib import Path

from capsmith_runtime.kube.http_server import Request, RequestHandler, Response
from capsmith_runtime.webhook.server import LIMITS, CallLimits
from tests.runtime.webhook.hook_serving import serving

VALIDATE, CONVERT = (Request("POST", path, b"{}") for path in ("/validate", "/convert"))


async def answer(message: Request) -> Response:
    return Response(HTTPStatus.OK, b"{}")


class Slow:
    """A handler that returns when the test lets it."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.calls = 0

    async def __call__(self, message: Request) -> Response:
        self.calls += 1
        await self.go_on.wait()
        return Response(HTTPStatus.OK, b"{}")


async def start(limits: CallLimits, slow: Slow, count: int) -> list[asyncio.Task[Response]]:
    tasks = [asyncio.create_task(limits.call(slow, VALIDATE)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_a_call_too_many_may_be_repeated() -> None:
    limits, slow = CallLimits(4, paths=1), Slow()
    tasks = await start(limits, slow, 5)
    refused = await tasks[-1]
    assert (refused.status, refused.retry_after) == (HTTPStatus.TOO_MANY_REQUESTS, 1)
    slow.go_on.set()
    assert {(await task).status for task in tasks[:-1]} == {HTTPStatus.OK}
    assert (await limits.call(answer, VALIDATE)).status == HTTPStatus.OK


async def test_one_of_several_paths_has_half_of_the_calls() -> None:
    limits, slow = CallLimits(4, paths=2), Slow()
    tasks = await start(limits, slow, 4)
    assert slow.calls == 2
    assert (await limits.call(answer, CONVERT)).status == HTTPStatus.OK
    slow.go_on.set()
    await asyncio.gather(*tasks)


async def test_concurrent_conversions_do_not_fail_beside_slow_validators(tmp_path: Path) -> None:
    """120 concurrent calls succeed while validators have all the calls that they may have."""
    slow, validators, conversions = Slow(), CallLimits(200, paths=1), CallLimits(paths=1)

    async def route(message: Request) -> Response:
        limits, handler = routes[message.path]
        return await limits.call(handler, message)

    routes: dict[str, tuple[CallLimits, RequestHandler]] = {
        "/validate": (validators, slow),
        "/convert": (conversions, answer),
    }
    async with serving(tmp_path, route, limits=LIMITS) as server:
        waiting = [asyncio.create_task(server.post("/validate")) for _ in range(200)]
        while slow.calls < 200:
            await asyncio.sleep(0)
        replies = await asyncio.gather(*(server.post("/convert") for _ in range(120)))
        assert {reply.status for reply in replies} == {HTTPStatus.OK}
        slow.go_on.set()
        assert {reply.status for reply in await asyncio.gather(*waiting)} == {HTTPStatus.OK}
