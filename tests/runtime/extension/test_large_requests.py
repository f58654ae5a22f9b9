"""Requests about large topologies are read in threads, so that the event loop goes on."""

from __future__ import annotations

import json
import threading
from typing import Any

from capsmith_runtime.extension.dispatch import Dispatcher, Handler
from capsmith_runtime.extension.responses import Codec
from capsmith_runtime.kube.http_server import Request
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.webhook.large_requests import LARGE_BYTES


class Extension:
    def hook(self, request: Any) -> list[str]:
        return [request["text"]]


async def test_a_large_request_is_read_and_answered_in_threads() -> None:
    threads: list[threading.Thread] = []

    def read(request: Any) -> Any:
        threads.append(threading.current_thread())
        return request

    def write(result: list[str], request: Any) -> dict[str, Any]:
        threads.append(threading.current_thread())
        return {"found": result}

    codec = Codec(read, (list,), write)
    handler = Handler(hook="Hook", name="hook", method="hook", codec=codec)
    dispatcher = Dispatcher(Extension(), [handler], Metrics(), threads=1)
    for size, is_main in ((1, True), (LARGE_BYTES, False)):
        body = json.dumps({"text": "x" * size}).encode()

        response = await dispatcher.handle(Request("POST", handler.path, body))

        assert json.loads(response.body)["found"] == ["x" * size]
        assert {each is threading.main_thread() for each in threads} == {is_main}
        threads.clear()
