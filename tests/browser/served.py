"""A page that is served in this process and receives its data from a simulated API server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from capsmith.clusters.conditions import JSON
from capsmith.clusters.lab.page.actions import Actions
from capsmith.clusters.lab.page.model.store import SimulatedServer
from capsmith.clusters.lab.page.serve import PageServer
from capsmith.clusters.processes.kube import KubeClient
from tests.browser.api_server import SimulatedApi, serve_api

SECONDS = 30.0


class SimulatedSource:
    """Logs and states that a test chooses."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "manager.log"
        self.log.write_text("")
        self.data: JSON = {
            "title": "lab acme",
            "running": True,
            "provider": "",
            "logs": ["manager"],
            "components": [
                {"name": "manager", "state": "running", "restarts": 0, "reason": ""},
            ],
        }
        self.servers: tuple[SimulatedServer, ...] | None = ()

    def find_logs(self) -> dict[str, Path]:
        return {"manager": self.log}

    def describe(self) -> JSON:
        return dict(self.data)

    def read_servers(self) -> tuple[SimulatedServer, ...] | None:
        return self.servers


@dataclass
class ServedPage:
    """A page, and the sources of its data."""

    api: SimulatedApi
    source: SimulatedSource
    address: str
    opener: Path
    end: Callable[[], None]

    @property
    def key(self) -> str:
        return self.opener.read_text().split("<pre>")[1].split("</pre>")[0]

    @property
    def host(self) -> str:
        return self.address.removeprefix("http://").rstrip("/")


@contextmanager
def serve_page(folder: Path) -> Iterator[ServedPage]:
    """Return a context manager that provides a page that is served until it exits."""
    with serve_api(folder) as (api, client), serve_page_of(api, client, folder) as page:
        yield page


@contextmanager
def serve_page_of(
    api: SimulatedApi, client: KubeClient, folder: Path, actions: Actions | None = None
) -> Iterator[ServedPage]:
    """Return a context manager that provides a page of an API server that has objects already."""
    source = SimulatedSource(folder)
    page = PageServer(client, source, "lab acme", folder / "page.html", actions)
    with _serve(page) as (address, server, end):
        yield ServedPage(api, source, address, server.opener, end)


@contextmanager
def _serve(server: PageServer) -> Iterator[tuple[str, PageServer, Callable[[], None]]]:
    addresses = []
    ready = threading.Event()

    def serve() -> None:
        def note(address: str) -> None:
            addresses.append(address)
            ready.set()

        server.serve(0, note)

    def end() -> None:
        server.stop()
        thread.join(SECONDS)

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield addresses[0], server, end
    finally:
        end()
        assert not thread.is_alive()
