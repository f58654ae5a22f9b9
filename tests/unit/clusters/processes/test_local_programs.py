"""What a local program writes and how it ends is bounded, whatever the environment says."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from capsmith.clusters.processes import process
from capsmith.clusters.processes.errors import ProcessError
from capsmith.clusters.processes.process import Process, fetch_text, probe_http, read_output


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"healthy")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_local_requests_use_no_proxy(url: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    assert probe_http(url)()
    assert fetch_text(url) == b"healthy"


def test_only_the_end_of_a_log_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(1 << 40)  # takes no space
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    monkeypatch.setattr(process, "_LOG_TAIL_BYTES", 1000)
    lines = Process("one", ["true"], log).tail().splitlines()
    assert lines[0] == "--- end of log ---"
    assert lines[-1] == "last"


def test_output_without_end_is_cut() -> None:
    command = [sys.executable, "-c", "while True: print('--flag ' * 1000)"]
    assert len(read_output(command, dict(os.environ), timeout=60, limit=5000)) == 5000


def test_a_program_that_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    # The child holds the pipe open for writing until it is killed.
    script = f"tail -f /dev/null > {fifo} & wait"
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ProcessError, match="has not ended"):
        read_output(["sh", "-c", script], dict(os.environ), timeout=1, limit=5000)
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_program_that_cannot_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="No such file"):
        read_output([str(tmp_path / "none")], {}, timeout=1, limit=10)
