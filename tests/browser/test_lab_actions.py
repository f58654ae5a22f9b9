"""Buttons of the page in a browser: each does what its command does, in every tab."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.page.actions import LabActions
from capsmith.clusters.lab.page.model.store import SimulatedServer
from tests.browser.api_server import serve_api
from tests.browser.objects import make_cluster, make_machine
from tests.browser.served import ServedPage, serve_page_of
from tests.browser.window import ENTER, SPACE, Window
from tests.unit.clusters.lab.page.test_page_of_a_lab import make_lab, run_provider

READ_NAMES = "return [...document.querySelectorAll('.tree button.name')].map(e => e.textContent)"
NAMES = [
    *("Cluster/demo", "AcmeCluster/demo", "MachineDeployment/demo-md-0"),
    *("Machine/one", "AcmeMachine/one"),
]
FORBIDDEN = "/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/default/acmeclusters/demo"


@dataclass
class Lab:
    """A page with buttons, and the files of its lab."""

    page: ServedPage
    folder: LabFolder

    @property
    def server(self) -> Path:
        return self.folder.cloud / "servers" / "one.json"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    root = tmp_path_factory.mktemp("lab")
    folder = make_lab(root)
    (folder.cloud / "servers").mkdir(parents=True)
    with (
        serve_api(root) as (api, client),
        serve_page_of(api, client, root, LabActions(client, folder)) as page,
        run_provider(folder),
    ):
        for obj in [*make_cluster(), *make_machine("one")]:
            api.put(obj)
        page.source.servers = (SimulatedServer("17", "one", "acme://one", "one.json"),)
        found = Lab(page, folder)
        found.server.write_text("{}")
        yield found


def open_page(window: Window, lab: Lab) -> None:
    window.open(lab.page.opener.as_uri())
    # Kinds are listed side by side: rows move until their parents are there.
    window.wait(lambda: window.run(READ_NAMES) == NAMES)


@contextmanager
def second_tab(window: Window) -> Iterator[None]:
    first = window.driver.current_window_handle
    window.driver.switch_to.new_window("tab")
    try:
        yield
    finally:
        window.driver.switch_to.window(first)


def test_buttons_do_what_they_show(window: Window, lab: Lab) -> None:
    open_page(window, lab)
    window.press(window.find("button.name", "MachineDeployment/demo-md-0"), ENTER)
    window.press(window.find("summary", "Try with this object"), ENTER)
    assert '"replicas":3' in window.find(".details .actions li", "Scale to 3").text
    window.press(window.find(".actions button", "Scale to 3"), SPACE)
    window.wait_text("0 of 3 ready", ".tree")
    window.press(window.find(".details .actions button", "Pause"), ENTER)
    window.wait_text("Paused", ".details")
    window.press(window.find(".details .actions button", "Resume"), ENTER)
    window.wait_text("Done: Resume.", "[role=status]")
    window.press(window.find("button.name", "AcmeMachine/one"), ENTER)
    window.wait_text("AcmeMachine/one", ".details h2")
    window.press(window.find("summary", "Try with this object"), ENTER)
    window.press(window.find(".actions button", "Lose the server"), ENTER)
    window.wait(lambda: not lab.server.exists())
    assert window.read_messages() == []


def test_faults_of_the_cloud_are_seen_in_two_tabs(window: Window, lab: Lab) -> None:
    open_page(window, lab)
    with second_tab(window):
        window.driver.get(lab.page.opener.as_uri())
        window.press(window.find("summary", "Try in this lab"), ENTER)
        window.press(window.find(".actions button", "Refuse logins"), ENTER)
        window.find(".actions button", "Accept logins again")
        assert [*window.find_violations("light"), *window.find_violations("dark")] == []
    window.press(window.find("summary", "Try in this lab"), ENTER)
    command = window.find(".actions li", "Accept logins again").text.partition("again ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    window.find(".actions button", "Refuse logins")
    changed = make_machine("one", phase="Failed", message="<b>gone</b>")[0]
    lab.page.api.put(changed)
    window.wait_text("InfrastructureReady: <b>gone</b>", ".tree")
    with second_tab(window):
        window.driver.get(lab.page.opener.as_uri())
        window.wait_text("InfrastructureReady: <b>gone</b>", ".tree")


def test_the_tab_key_reaches_every_control(window: Window, lab: Lab) -> None:
    lab.page.source.log.write_text("INFO about one\n")
    open_page(window, lab)
    window.press(window.find("button.name", "AcmeMachine/one"), ENTER)
    window.wait_text("AcmeMachine/one", ".details h2")
    window.wait_text("about one", ".logs pre")
    for summary in ("Try in this lab", "Try with this object", "Events", "YAML"):
        window.press(window.find("summary", summary), SPACE)
    window.find(".details .actions button", "Delete")
    assert window.find_unreachable() == []
    controls = "return window.controls.map(each => each.tagName).join(' ')"
    assert {"BUTTON", "INPUT", "SELECT", "SUMMARY", "PRE"} <= set(window.run(controls).split())


def test_an_action_that_fails_says_why(window: Window, lab: Lab) -> None:
    open_page(window, lab)
    window.press(window.find("button.name", "AcmeCluster/demo"), ENTER)
    window.press(window.find("summary", "Try with this object"), ENTER)
    lab.page.api.forbidden.add(FORBIDDEN)
    window.press(window.find(".details .actions button", "Pause"), ENTER)
    window.wait_text(f"Pause: PATCH {FORBIDDEN}: 403", "[role=status]")
    assert window.find(".details .actions button", "Pause").is_enabled()
