"""Conversion and admission of one manager on one port."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
from http import HTTPStatus
from pathlib import Path
from typing import cast

import pytest
import trustme

from capsmith_runtime.admission.controllers import AdmissionWebhook
from capsmith_runtime.builder import ManagerBuilder
from capsmith_runtime.component import Component
from capsmith_runtime.contract.versions import READERS
from capsmith_runtime.conversion.controllers import ConversionWebhook
from capsmith_runtime.kube.client import KubeClient
from capsmith_runtime.kube.http_server import Request, Response
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.options import parse
from capsmith_runtime.reconcile.caches import WatchScope
from capsmith_runtime.reconcile.groups import ControllerGroup
from capsmith_runtime.webhook.options import WEBHOOK, WebhookOptions
from capsmith_runtime.webhook.server import WebhookGroup, WebhookServer
from tests.runtime.admission.requests import GROUP, author, kind, review, widget
from tests.runtime.webhook.hook_serving import Running, trusting, write_certificate

VALIDATE = f"/validate/widgets.{GROUP}"


def groups(folder: Path) -> tuple[WebhookGroup, WebhookGroup]:
    """Return both groups of a manager; call it on an event loop."""
    arguments = ["--webhook-host=127.0.0.1", "--webhook-port=0", f"--webhook-cert-dir={folder}"]
    component = Component(
        label="infrastructure-acme",
        namespace="acme-system",
        contract="v1beta2",
        groups=(
            lambda caches, context: ControllerGroup(),
            ConversionWebhook((), {}),
            AdmissionWebhook((kind(author(())),)),
        ),
    )
    options = parse(arguments, ["infrastructure"], [WEBHOOK])
    client = cast(KubeClient, None)
    builder = ManagerBuilder(component, options, client, Metrics(), READERS[0], WatchScope())
    first, second = (each for each in builder.groups if isinstance(each, WebhookGroup))
    return first, second


async def test_the_first_group_serves_for_all(tmp_path: Path) -> None:
    first, second = groups(tmp_path)

    assert (len(first.runnables), len(second.runnables)) == (1, 0)
    assert (first.ready, second.ready) == (False, True)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", VALIDATE, review("CREATE", widget({"size": "s"})), 200),
        ("POST", "/convert", {}, 400),
        ("GET", VALIDATE, {}, 405),
        ("POST", "/validate/gadgets", {}, 404),
    ],
)
def test_all_routes_are_on_one_port(
    method: str, path: str, body: object, status: int, tmp_path: Path
) -> None:
    authority = trustme.CA()
    write_certificate(tmp_path, authority)

    def call(port: int) -> int:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, context=trusting(authority), timeout=30
        )
        with contextlib.closing(connection):
            connection.request(method, f"{path}?timeout=10s", json.dumps(body))
            return connection.getresponse().status

    async def main() -> int:
        first, _ = groups(tmp_path)
        (serve,) = first.runnables
        running = asyncio.create_task(serve())
        while not first.ready:
            await asyncio.sleep(0.01)
        found = await asyncio.to_thread(call, first.port)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return found

    assert asyncio.run(main()) == status


async def test_a_manager_that_stops_still_serves(tmp_path: Path) -> None:
    """Each response ends its connection, so that the next request goes to another manager."""
    authority = trustme.CA()
    write_certificate(tmp_path, authority)
    options = WebhookOptions(host="127.0.0.1", port=0, certificates=tmp_path, shutdown_delay=3600)
    server = WebhookServer(options, Metrics())

    async def answer(request: Request) -> Response:
        return Response(HTTPStatus.OK, b"{}")

    async with server.listening(answer):
        draining = asyncio.create_task(server.drain())
        await asyncio.sleep(0)
        running = Running(server.port, server._certificates, trusting(authority))
        found = await running.post("/")
        assert (found.status, found.headers["connection"]) == (HTTPStatus.OK, "close")
        assert not draining.done()
        draining.cancel()


async def test_a_server_that_does_not_listen_has_no_clients(tmp_path: Path) -> None:
    options = WebhookOptions(certificates=tmp_path, shutdown_delay=3600)
    async with asyncio.timeout(60):
        await WebhookServer(options, Metrics()).drain()
