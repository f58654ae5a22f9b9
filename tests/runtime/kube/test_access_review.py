"""Who may read metrics by HTTPS: tokens, permissions, and how long decisions are kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from http import HTTPStatus
from typing import Any, cast

import pytest

from capsmith_runtime.errors import ServerError, create_api_error
from capsmith_runtime.kube.client import JSON, KubeClient, ResourceType
from capsmith_runtime.kube.diagnostics import (
    CACHE_ENTRIES,
    DENIED_SECONDS,
    GRANTED_SECONDS,
    UNKNOWN_BURST,
    UNKNOWN_PER_SECOND,
    AccessReviewer,
    Diagnostics,
    DiagnosticsOptions,
)
from capsmith_runtime.kube.http_server import Request, Response
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.testing.clock import VirtualLoop

USER = {"username": "system:serviceaccount:monitoring:prometheus", "groups": ["g"], "uid": "1"}


class ScriptedApi:
    """Knows one token, whose user may get metrics or not."""

    def __init__(self) -> None:
        self.allowed = True
        self.broken = False
        self.created: list[JSON] = []

    async def create(self, resource: ResourceType, obj: JSON) -> JSON:
        if self.broken:
            raise create_api_error(500, "InternalError", "etcd is slow")
        self.created.append(obj)
        if resource.kind == "TokenReview":
            known = obj["spec"]["token"] == "known"
            status: dict[str, Any] = {"authenticated": True, "user": USER} if known else {}
        else:
            status = {"allowed": self.allowed}
        return {**obj, "status": status}


def _reviewer(api: ScriptedApi) -> AccessReviewer:
    return AccessReviewer(cast(KubeClient, api))


def _run(test: Any) -> None:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(test)


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        ("Bearer known", HTTPStatus.OK),
        ("bearer  known", HTTPStatus.OK),
        ("Bearer other", HTTPStatus.UNAUTHORIZED),
        ("Bearer", HTTPStatus.UNAUTHORIZED),
        ("Bearer ", HTTPStatus.UNAUTHORIZED),
        ("Basic known", HTTPStatus.UNAUTHORIZED),
        ("known", HTTPStatus.UNAUTHORIZED),
        ("", HTTPStatus.UNAUTHORIZED),
    ],
)
async def test_clients_authenticate_with_a_bearer_token(
    authorization: str, status: HTTPStatus
) -> None:
    assert await _reviewer(ScriptedApi()).review(authorization, "GET", "/metrics") is status


async def test_the_permission_is_that_of_the_path_and_the_method() -> None:
    api = ScriptedApi()
    api.allowed = False

    assert await _reviewer(api).review("Bearer known", "GET", "/metrics") is HTTPStatus.FORBIDDEN
    _, review = api.created
    attributes = {"path": "/metrics", "verb": "get"}
    assert review["spec"] == {
        "user": USER["username"],
        "groups": ["g"],
        "uid": "1",
        "nonResourceAttributes": attributes,
    }


@pytest.mark.parametrize(("allowed", "seconds"), [(True, GRANTED_SECONDS), (False, DENIED_SECONDS)])
def test_decisions_are_kept_for_a_short_time(allowed: bool, seconds: float) -> None:
    async def test() -> None:
        api = ScriptedApi()
        api.allowed = allowed
        reviewer = _reviewer(api)
        first = await reviewer.review("Bearer known", "GET", "/metrics")
        api.allowed = not allowed
        await asyncio.sleep(seconds - 1)
        assert await reviewer.review("Bearer known", "GET", "/metrics") is first
        assert len(api.created) == 2
        await asyncio.sleep(2)
        assert await reviewer.review("Bearer known", "GET", "/metrics") is not first

    _run(test())


async def test_a_decision_is_for_one_method_only() -> None:
    api = ScriptedApi()
    reviewer = _reviewer(api)
    await reviewer.review("Bearer known", "GET", "/metrics")
    api.allowed = False

    assert await reviewer.review("Bearer known", "HEAD", "/metrics") is HTTPStatus.FORBIDDEN


async def test_many_tokens_of_many_clients_take_no_memory() -> None:
    reviewer = _reviewer(ScriptedApi())
    for number in range(CACHE_ENTRIES * 2):
        await reviewer.review(f"Bearer {number}", "GET", "/metrics", f"peer-{number}")

    assert len(reviewer._denied) == len(reviewer._rate._buckets) == CACHE_ENTRIES
    assert not any("Bearer" in key or key.isdigit() for key in reviewer._denied)


async def _flood(reviewer: AccessReviewer, count: int, peer: str) -> Counter[HTTPStatus]:
    return Counter(
        [
            await reviewer.review(f"Bearer {peer}-{number}", "GET", "/metrics", peer)
            for number in range(count)
        ]
    )


def test_unknown_tokens_of_a_client_cause_reviews_at_a_limited_rate() -> None:
    async def test() -> None:
        api = ScriptedApi()
        reviewer = _reviewer(api)
        found = await _flood(reviewer, 1000, "a")
        assert found[HTTPStatus.UNAUTHORIZED] == len(api.created) == UNKNOWN_BURST
        assert found[HTTPStatus.TOO_MANY_REQUESTS] == 1000 - UNKNOWN_BURST

        await asyncio.sleep(3 / UNKNOWN_PER_SECOND)
        await reviewer.review("Bearer other", "GET", "/metrics", "a")
        assert len(api.created) == UNKNOWN_BURST + 1

    _run(test())


def test_a_flood_of_unknown_tokens_keeps_no_other_client_out() -> None:
    """Neither a new client, nor one whose grant has expired, even from the same address."""

    async def test() -> None:
        api = ScriptedApi()
        reviewer = _reviewer(api)
        assert await reviewer.review("Bearer known", "GET", "/metrics", "a") is HTTPStatus.OK
        for number in range(CACHE_ENTRIES * 2):
            await reviewer.review(f"Bearer {number}", "GET", "/metrics", f"peer-{number}")
        await _flood(reviewer, 100, "a")
        before = len(api.created)
        assert await reviewer.review("Bearer known", "GET", "/metrics", "a") is HTTPStatus.OK
        assert len(api.created) == before

        await asyncio.sleep(GRANTED_SECONDS + 1)
        await _flood(reviewer, 100, "a")
        assert await reviewer.review("Bearer known", "GET", "/metrics", "a") is HTTPStatus.OK
        assert await reviewer.review("Bearer known", "HEAD", "/metrics", "b") is HTTPStatus.OK

    _run(test())


async def test_errors_are_not_remembered() -> None:
    api = ScriptedApi()
    api.broken = True
    reviewer = _reviewer(api)
    with pytest.raises(ServerError):
        await reviewer.review("Bearer known", "GET", "/metrics")
    api.broken = False

    assert await reviewer.review("Bearer known", "GET", "/metrics") is HTTPStatus.OK


async def test_debugging_needs_a_permission_of_its_own_by_https() -> None:
    api = ScriptedApi()
    options = DiagnosticsOptions(address="127.0.0.1:0")
    diagnostics = Diagnostics(options, cast(KubeClient, api), Metrics(), {}, {})

    def send(method: str, path: str, token: str) -> Awaitable[Response]:
        request = Request(method, path, b"", "10.0.0.7", f"Bearer {token}")
        return diagnostics._handle(request)

    assert (await send("GET", "/debug/dump", "unknown")).status == 401
    assert (await send("GET", "/debug/dump", "known")).status == 200
    assert api.created[-1]["spec"]["nonResourceAttributes"] == {
        "path": "/debug/dump",
        "verb": "get",
    }
    api.allowed = False
    assert (await send("PUT", "/debug/flags/v", "known")).status == 403
    assert api.created[-1]["spec"]["nonResourceAttributes"] == {
        "path": "/debug/flags/v",
        "verb": "put",
    }
    assert (await send("PUT", "/metrics", "known")).status == 405
