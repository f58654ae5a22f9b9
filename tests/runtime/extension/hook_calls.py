"""Calls of a hook whose method returns what the test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from capsmith_runtime.extension import lifecycle
from capsmith_runtime.extension.dispatch import API_VERSION, Dispatcher, Handler
from capsmith_runtime.kube.http_server import Request, Response
from capsmith_runtime.kube.metrics import Metrics

ROOT = f"/{API_VERSION}/"
CLUSTER = {"metadata": {"name": "c1", "namespace": "default"}, "spec": {}}


class Author:
    """Returns the same result from every hook, and keeps the last request."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.request: Any = None

    def hook(self, request: Any) -> Any:
        self.request = request
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer(request) if callable(self._answer) else self._answer


def handler(hook: str, codec: Any, **more: Any) -> Handler:
    return Handler(hook=hook, name="it", method="hook", codec=codec, **more)


CREATE = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE)


def call(
    author: object, asked: Handler, body: Any = None, parts: Mapping[str, Any] | None = None
) -> Response:
    async def main() -> Response:
        dispatcher = Dispatcher(author, [asked], Metrics(), threads=4)
        text = json.dumps({"cluster": CLUSTER} if body is None else body).encode()
        sent = {"method": "POST", "path": asked.path, "body": text, **(parts or {})}
        return await dispatcher.handle(Request(**sent))

    return asyncio.run(main())


def answered(author: object, asked: Handler, body: Any = None) -> dict[str, Any]:
    response = call(author, asked, body)
    assert response.status == HTTPStatus.OK
    found: dict[str, Any] = json.loads(response.body)
    assert found.pop("apiVersion") == API_VERSION
    assert found.pop("kind") == f"{asked.hook}Response"
    return found
