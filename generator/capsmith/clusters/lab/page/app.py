"""The page's web application: its files, and a stream of changes for each browser tab."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from functools import cache
from http.client import HTTPException
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from capsmith.clusters.conditions import JSON, get_mapping
from capsmith.clusters.hiding import hide_in_line
from capsmith.clusters.lab.page.actions import Actions, NoActions
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.guard import Guard
from capsmith.clusters.lab.page.stream import Source, StreamRequest, ViewStream
from capsmith.clusters.processes.kube import ApiError

_TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
}
_INDEX = "index.html"
_MAX_BODY = 256 * 1024
_PAUSE_SECONDS = 0.15
"""Seconds during which changes are collected into one message; longer if messages are expensive."""
_LOOK_SECONDS = 0.5
"""Seconds between looks at files: logs, the state of processes, simulated servers."""


def create_app(
    cluster: WatchedCluster,
    source: Source,
    host: str,
    key: str,
    is_ending: Callable[[], bool],
    actions: Actions | None = None,
) -> ASGIApp:
    """Return the page's web application.

    ``host`` is the host and port in the page's address, and ``key`` is the key that requests must
    present.  Streams end when ``is_ending`` returns true.  If ``actions`` is None, the page is
    read-only.
    """

    async def stream(request: Request) -> Response:
        try:
            body = await _read_body(request)
            wanted = StreamRequest.from_data(json.loads(body))
        except (ValueError, RecursionError):
            return JSONResponse({"error": "the request is not valid JSON"}, 400)
        lines = _stream(cluster, ViewStream(cluster, source, wanted, actions), is_ending)
        return StreamingResponse(lines, media_type="application/x-ndjson")

    async def act(request: Request) -> Response:
        try:
            request_data = get_mapping(json.loads(await _read_body(request)))
        except (ValueError, RecursionError):
            return JSONResponse({"error": "the request is not valid JSON"}, 400)
        error = await asyncio.to_thread(_act, cluster, actions or NoActions(), request_data)
        return JSONResponse({"error": error}, 409 if error else 200)

    routes = [
        Route("/api/action", act, methods=["POST"]),
        Route("/api/stream", stream, methods=["POST"]),
        Route("/{path:path}", _send_file),
    ]
    return Guard(Starlette(routes=routes), host, key)


def _act(cluster: WatchedCluster, actions: Actions, wanted: JSON) -> str:
    """Run an action that is currently offered. Return why it failed, or an empty string."""
    with cluster.read() as store:
        found = store.find(str(wanted.get("object") or ""))
        if found is None:
            offered = actions.list_for_lab() if not wanted.get("object") else []
        else:
            offered = actions.list_for_object(store, found)
    for each in offered:
        if each.id == wanted.get("action"):
            try:
                each.run()
            except (ApiError, OSError, HTTPException, LookupError) as error:
                return hide_in_line(str(error))
            return ""
    return "this is no longer possible: the page shows the current state"


async def _stream(
    cluster: WatchedCluster, view: ViewStream, is_ending: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """Yield a line of JSON for each change, until the server ends or the browser disconnects."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def notice() -> None:
        loop.call_soon_threadsafe(changed.set)

    with cluster.listen(notice):
        while not is_ending():
            changed.clear()
            begin = loop.time()
            message = await asyncio.to_thread(view.next_message)
            if message:
                yield json.dumps(message, separators=(",", ":")).encode() + b"\n"
            # Pause for as long as the message took, so that at least half of the processor is left
            # for watches.
            await asyncio.sleep(max(_PAUSE_SECONDS, loop.time() - begin))
            try:
                await asyncio.wait_for(changed.wait(), _LOOK_SECONDS)
            except TimeoutError:
                continue


async def _read_body(request: Request) -> bytes:
    """Return the body of a request.  Raises ValueError if it is too long."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _MAX_BODY:
            raise ValueError("the body is too long")
    return body


async def _send_file(request: Request) -> Response:
    path = request.path_params.get("path", "") or _INDEX
    assets = load_assets()
    if path not in assets:
        return JSONResponse({"error": "no such file"}, 404)
    return Response(assets[path], media_type=_TYPES[PurePosixPath(path).suffix])


@cache
def load_assets() -> dict[str, bytes]:
    """Return the files that the browser may load, by path. They contain no cluster data."""
    root = files(__package__) / "assets"
    found = {}
    for folder in ("", "vendor/"):
        for each in (root / folder).iterdir():
            if each.is_file() and PurePosixPath(each.name).suffix in _TYPES:
                found[f"{folder}{each.name}"] = each.read_bytes()
    return found
