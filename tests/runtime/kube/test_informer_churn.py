"""Random changes under random faults: the cache ends equal to the list, without wrong events."""

from __future__ import annotations

import asyncio
import copy
import gc
import random
from pathlib import Path
from typing import Any

import pytest

from capsmith.clusters.processes.kube import ApiError as Refused
from capsmith_runtime.errors import ApiError, NotFoundError
from capsmith_runtime.kube.client import NamespacedName, Selection, version_of
from capsmith_runtime.kube.patch import write
from tests.runtime.support.faults import Loss, Request, failure
from tests.runtime.support.following import WIDGET, Following, following
from tests.runtime.support.http1 import Answer
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually, running

# Who is cancelled in the middle of a TLS handshake leaves the connection to the garbage collector:
# the HTTP client has no hand on it yet. It is collected before the test ends.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

CAUSES = ("gone", "Unreachable", "ended", "ServerError", "TooManyRequests")
CHANGES, RESTARTS = 200, 8
NAMES = [f"w-{number}" for number in range(12)]
FAULTS = (
    failure(410, "Expired"),
    failure(500, "InternalError"),
    failure(429, "TooManyRequests", Retry_After="0"),
    Answer(502, b"<html>Bad Gateway</html>", {"Content-Type": "text/html"}),
    Loss.DROP,
    Loss.UNANSWERED,
)


def somebody(api: Api, namespace: str, chance: random.Random) -> None:
    """One change, past the proxy."""
    name = chance.choice(NAMES)
    try:
        match chance.randrange(4):
            case 0:
                api.create(namespace, name, size=0)
            case 1:
                api.delete(namespace, name)
            case _:
                api.change(namespace, name, size=chance.randrange(1000))
    except Refused as error:
        if error.status not in (404, 409):
            raise


async def churn(api: Api, namespace: str, chance: random.Random) -> None:
    while True:
        await asyncio.to_thread(somebody, api, namespace, chance)
        await asyncio.sleep(chance.uniform(0, 0.01))


async def ourselves(found: Following, namespace: str, chance: random.Random) -> None:
    """Writes through the proxy; each is seen by the next read, or something newer is."""
    while True:
        await asyncio.sleep(0.005)
        key = NamespacedName(namespace, chance.choice(NAMES))
        old = found.informer.get(key)
        if old is None:
            continue
        new = copy.deepcopy(old)
        new["status"] = {"seen": chance.randrange(1000)}
        try:
            answer = await write(found.client, WIDGET, old, new, found.informer.update_from_write)
        except NotFoundError:
            continue
        except ApiError:
            continue  # a fault that was injected
        now = found.informer.get(key)
        assert now is None or version_of(now) >= version_of(answer)


async def havoc(proxy: FaultProxy, chance: random.Random) -> None:
    def some(request: Request) -> bool:
        return chance.random() < 0.5

    while True:
        await asyncio.sleep(chance.uniform(0.05, 0.3))
        match chance.randrange(4):
            case 0:
                proxy.drop()
            case 1:
                proxy.freeze()
            case _:
                # Unused faults would accumulate until no request succeeds.
                proxy.calm()
                proxy.inject(chance.choice(FAULTS), some, times=chance.randrange(1, 4))


def enough(found: Following, tasks: list[asyncio.Task[Any]]) -> bool:
    if any(task.done() for task in tasks):
        return True  # it has failed, and raises when it is awaited
    return len(found.follower.changes) > CHANGES and sum(map(found.restarts, CAUSES)) > RESTARTS


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_lost_or_duplicated(
    api: Api, proxy: FaultProxy, kubeconfig: Path, namespace: str, seed: int
) -> None:
    chance = random.Random(seed)
    options = {"silence_seconds": 0.5, "request_seconds": 1.0, "watch_seconds": (1.0, 2.0)}
    async with following(kubeconfig, Selection(namespace), **options) as found:
        await found.synced()
        work = (churn(api, namespace, chance), ourselves(found, namespace, chance))
        async with running(*work, havoc(proxy, chance)) as tasks:
            await eventually(lambda: enough(found, tasks), 120, "enough has happened")
        proxy.calm()
        # A request outlives the task that sent it: the last write may come after the first list.
        await eventually(
            lambda: found.agrees_with(api.widgets(namespace)), what="the cache is the list"
        )
    gc.collect()
