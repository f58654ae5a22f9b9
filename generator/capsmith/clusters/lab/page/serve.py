"""Serve the page on the loopback interface until a signal arrives."""

from __future__ import annotations

import html
import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.page.actions import Actions
from capsmith.clusters.lab.page.app import create_app
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.sources import LogReader
from capsmith.clusters.lab.page.stream import Source
from capsmith.clusters.lab.page.watches import ClusterWatch
from capsmith.clusters.lab.state import write_text
from capsmith.clusters.processes.kube import KubeClient

LOOPBACK = "127.0.0.1"
_LOOK_SECONDS = 0.5
_HISTORY = 8 * 1024 * 1024
"""Bytes from the end of each log from which the author's calls are read."""
_OPENER = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}#{key}">
<title>capsmith lab page</title>
<p><a href="{address}#{key}">Open the page of {title}</a>, or open {address} and enter this key:</p>
<pre>{key}</pre>
</html>
"""


class PageServer:
    """A page about one cluster, and the private file that opens it."""

    def __init__(
        self,
        client: KubeClient,
        source: Source,
        title: str,
        opener: Path,
        actions: Actions | None = None,
    ) -> None:
        """Define a page.  ``opener`` is the path to the file to write, in a private folder.

        If ``actions`` is None, the page is read-only.
        """
        self._actions = actions
        self._client = client
        self._source = source
        self._title = title
        self._server: uvicorn.Server | None = None
        self.opener = opener

    def serve(self, port: int, ready: Callable[[str], None]) -> None:
        """Serve until SIGINT or SIGTERM. Call ``ready`` with the address before the first request.

        If ``port`` is 0, any free port is chosen.  Raises LabError if the port is in use.
        """
        cluster = WatchedCluster()
        watch = ClusterWatch(self._client, cluster)
        with closing(_bind(port)) as bound:
            host = f"{LOOPBACK}:{bound.getsockname()[1]}"
            key = secrets.token_urlsafe(32)
            app = create_app(cluster, self._source, host, key, self._is_ending, self._actions)
            self._server = server = create_server(app)
            with self._write_opener(f"http://{host}/", key), _follow(cluster, self._source):
                watch.start()
                try:
                    ready(f"http://{host}/")
                    with suppress(KeyboardInterrupt):
                        server.run(sockets=[bound])
                finally:
                    watch.stop()

    def stop(self) -> None:
        """Make :meth:`serve` return. Call this from another thread."""
        if self._server is not None:
            self._server.should_exit = True

    def _is_ending(self) -> bool:
        return self._server is not None and self._server.should_exit

    @contextmanager
    def _write_opener(self, address: str, key: str) -> Iterator[None]:
        """Write the file that opens the page, which only this user can read, and remove it.

        If another page of the same lab has replaced it since, the file remains.
        """
        title = html.escape(self._title)
        write_text(self.opener, _OPENER.format(address=address, key=key, title=title))
        try:
            yield
        finally:
            with suppress(FileNotFoundError):
                if key in self.opener.read_text(encoding="utf-8"):
                    self.opener.unlink()


def create_server(app: ASGIApp) -> uvicorn.Server:
    """Return a server for an application. It logs errors, but neither requests nor its URL."""
    config = uvicorn.Config(
        # uvicorn's ASGI types are stricter than Starlette's.
        cast(Any, app),
        http="h11",
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        # Streams end within a second; only a browser that does not read can delay the end.
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


@contextmanager
def _follow(cluster: WatchedCluster, source: Source) -> Iterator[None]:
    """Keep the simulated cloud's servers and the author's calls in the store up to date."""
    ending = threading.Event()

    def follow() -> None:
        reader = LogReader(source.find_logs(), _HISTORY)
        while not ending.is_set():
            servers = source.read_servers()
            logs = reader.read(source.find_logs())
            with cluster.change() as store:
                store.set_servers(servers)
                for _, lines in logs:
                    store.calls.read(lines)
            ending.wait(_LOOK_SECONDS)

    thread = threading.Thread(target=follow, name="servers and logs", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _bind(port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
        # A browser that is opened before the server runs waits for it.
        bound.listen()
    except OSError as error:
        bound.close()
        message = f"port {port} cannot be used: {error.strerror}"
        raise LabError("lab-page-port", message, hint="Choose another --port.") from error
    return bound
