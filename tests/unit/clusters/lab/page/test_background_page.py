"""The page in the background: it is served once, and ends with its lab."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from capsmith.clusters.lab.down import end_lab
from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder, acquire, is_held
from capsmith.clusters.lab.page.background import start_page
from capsmith.clusters.lab.state import read_lab, write_state
from capsmith.clusters.processes.kubeconfig import render_token_kubeconfig
from capsmith.clusters.processes.wait import eventually
from tests.browser.api_server import serve_api
from tests.unit.clusters.lab.page.test_page_of_a_lab import make_lab

# The page outlives the command that starts it.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@dataclass
class RunningLab:
    """A lab whose supervisor is this process."""

    folder: LabFolder
    lock: int

    def end(self) -> None:
        """End the supervisor, as a crash would."""
        if self.lock >= 0:
            os.close(self.lock)
        self.lock = -1


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[RunningLab]:
    folder = make_lab(tmp_path)
    folder.pki.mkdir()
    lock = acquire(folder.lock)
    assert lock is not None
    running = RunningLab(folder, lock)
    with serve_api(folder.pki) as (_, client):
        text = render_token_kubeconfig(client.server, client.credentials.ca, "token")
        (folder.root / "admin").write_text(text)
        state = read_lab(folder.state)
        assert state is not None
        kubeconfig, tools = str(folder.root / "admin"), {"capi-v1.14": str(tmp_path)}
        write_state(folder.state, replace(state, kubeconfig=kubeconfig, tools=tools))
        yield running
        running.end()
        if folder.page_lock.exists():
            wait_end(folder)


def wait_end(folder: LabFolder) -> None:
    eventually(lambda: not is_held(folder.page_lock), timeout=60)


def read_address(opener: Path) -> str:
    match = re.search(r"http://(127\.0\.0\.1:\d+)/", opener.read_text())
    assert match is not None
    return match[1]


def test_the_page_is_served_once_until_the_lab_ends(lab: RunningLab) -> None:
    opener = start_page(lab.folder)
    address = read_address(opener)
    with closing(http.client.HTTPConnection(address, timeout=30)) as connection:
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
    assert (start_page(lab.folder), read_address(opener)) == (opener, address)
    lab.end()
    wait_end(lab.folder)
    assert not opener.exists()


def test_commands_at_the_same_time_share_one_page(lab: RunningLab) -> None:
    lab.folder.page_opener.write_text("left by a page that was killed")
    with ThreadPoolExecutor(4) as executor:
        futures = [executor.submit(start_page, lab.folder) for _ in range(4)]
        (opener,) = {future.result() for future in futures}
    assert read_address(opener)


def test_a_page_that_another_process_starts_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_lab(tmp_path)
    lock = acquire(folder.page_lock)
    assert lock is not None
    # The other process gets further while this one waits.
    write = partial(folder.page_opener.write_text, "opener")
    monkeypatch.setattr("capsmith.clusters.lab.page.background.time.sleep", lambda _: write())
    assert start_page(folder).read_text() == "opener"
    os.close(lock)


def test_the_end_of_a_lab_ends_its_page(lab: RunningLab) -> None:
    opener = start_page(lab.folder)
    lab.end()
    end_lab(lab.folder)
    assert not lab.folder.root.exists()
    assert not opener.exists()


def test_a_page_that_does_not_start_says_why(lab: RunningLab) -> None:
    lab.end()
    with pytest.raises(LabError, match=r"(?s)the page does not start.*acme is not running"):
        start_page(lab.folder)
