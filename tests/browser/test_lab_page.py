"""The page of the lab in a browser: what it shows, what it refuses, and what it draws again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.api_server import serve_api
from tests.browser.objects import copy, make_cluster, make_event, make_machine, write_record
from tests.browser.served import ServedPage, serve_page_of
from tests.browser.window import ENTER, SPACE, Window
from tests.unit.report_pages.test_hostile_pages import HOSTILE

READ_TYPES = "return [...new Set([...document.querySelectorAll('*')].map(each => each.tagName))]"
OBSERVE_ROWS = r"""
    window.changed = new Set();
    new MutationObserver((records) => records.forEach((record) =>
        [record.target, ...record.addedNodes, ...record.removedNodes].forEach((node) => {
            const row = node.closest && node.closest("tr");
            if (row) window.changed.add(row.cells[0].innerText.split(/\s/).pop());
        }),
    )).observe(document.querySelector("tbody"), { childList: true, subtree: true });
"""
"""Script that notes the last word of each row of the tree in which nodes are added or removed."""


def fill(page: ServedPage, count: int = 7) -> None:
    for obj in make_cluster():
        page.api.put(obj)
    for number in range(count):
        for obj in make_machine(f"m-{number}"):
            page.api.put(obj)


def open_page(window: Window, page: ServedPage) -> None:
    window.open(page.opener.as_uri())
    window.wait_text("Cluster/demo")


def test_keyboard_reaches_everything_and_changes_are_shown(
    window: Window, page: ServedPage
) -> None:
    fill(page)
    machine, infrastructure = make_machine("slow", phase="Provisioning", message="no quota")
    page.api.put(machine)
    page.api.put(infrastructure)
    open_page(window, page)
    assert "#" not in window.driver.current_url
    window.press(window.find("button.toggle", "7 Machines"), ENTER)
    window.find("button.name", "AcmeMachine/m-6")
    window.press(window.find("button.name", "Machine/slow"), SPACE)
    window.wait_text("InfrastructureReady: no quota", ".details")
    page.api.put({**copy(machine), "status": {"phase": "Running"}})
    window.wait_text("+  phase: Running", ".details .added")
    page.api.put(make_event(machine, "event", "it runs at last"))
    window.press(window.find("summary", "Events (1)"), ENTER)
    window.wait_text("it runs at last", ".details")
    page.source.log.write_text("INFO about m-6\nERROR about slow\n  detail of it\n")
    window.wait_text("about m-6", ".logs pre")
    window.press(window.find(".logs input"), SPACE)
    window.wait(lambda: window.count(".logs pre span") == 2)
    window.press(window.find(".details button", "Close"), ENTER)
    window.press(window.find("input[type=search]"), "slow")
    window.wait(lambda: window.count("button.toggle") == 0)
    assert window.count("tbody tr") == 5
    assert window.read_messages() == []


def test_filters_follow_the_keyboard(window: Window, page: ServedPage) -> None:
    # Otherwise each Machine would wait for its server.
    page.source.servers = None
    fill(page)
    for obj in make_machine("slow", phase="Provisioning", message="no quota"):
        page.api.put(obj)
    page.source.log.write_text("INFO about m-6\n")
    open_page(window, page)
    window.find("button.toggle", "7 Machines")
    window.press(window.find("label input[type=checkbox]"), SPACE)
    window.wait(lambda: window.count("button.toggle") == 0)
    window.find("button.name", "Machine/slow")
    window.wait_text("manager INFO about m-6", ".logs pre")
    window.press(window.find(".logs select"), "m")
    # With one component, its name is left out.
    window.wait(lambda: window.find(".logs pre").text == "INFO about m-6")
    follow = window.find(".logs label:last-child input")
    window.press(follow, SPACE)
    assert not follow.is_selected()
    assert window.read_messages() == []


def write_calls(page: ServedPage, name: str, *results: str) -> None:
    """Write the records of calls that begin every ten seconds and take one."""
    about = {"controller": "AcmeMachine", "key": f"default/{name}", "method": "reconcile_normal"}
    lines = []
    for number, result in enumerate(results):
        second = 10.0 * number
        lines += [write_record(second + 2, "DEBUG", "hooks", "call starts", **about)]
        if result:
            values = {**about, "result": result, "seconds": 1.0}
            lines += [write_record(second + 3, "DEBUG", "hooks", "call ends", **values)]
    with page.source.log.open("a") as log:
        log.writelines(f"{line}\n" for line in lines)


def test_the_time_of_a_machine_is_shown_with_the_calls_of_its_infrastructure(
    window: Window, page: ServedPage
) -> None:
    fill(page, 1)
    for obj in make_machine("slow", phase="Provisioning", message="no quota"):
        page.api.put(obj)
    write_calls(page, "slow", "Waiting", "<b>Error</b>")
    open_page(window, page)
    window.press(window.find("button.name", "Machine/slow"), ENTER)
    window.wait_text("provider's queue\tfirst reconcile", ".axis")
    window.wait_text("1.0 s\tauthor's call\treconcile_normal Waiting", ".axis")
    window.wait_text("9.0 s\tcloud", ".axis")
    window.wait_text("The author's calls (2)", ".details")
    write_calls(page, "slow", "", "")
    window.wait_text("The author's calls (4)", ".details")
    window.wait_text("running", ".details")
    widths = "return [...document.querySelectorAll('.bar')].map(each => each.offsetWidth)"
    assert all(width > 0 for width in window.run(widths))
    assert [*window.find_violations("light"), *window.find_violations("dark")] == []
    assert window.count(".details b") == 0
    assert window.read_messages() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(window: Window, page: ServedPage, scheme: str) -> None:
    fill(page)
    for obj in make_machine("slow", phase="Failed", message="no quota"):
        page.api.put(obj)
    page.source.log.write_text("ERROR about slow\n")
    page.source.data["components"][0] |= {"state": "restarting", "reason": "out of memory"}
    open_page(window, page)
    window.press(window.find("button.name", "Machine/slow"), ENTER)
    window.wait_text("no quota", ".details")
    assert window.find_violations(scheme) == []


def test_no_string_of_a_cluster_becomes_markup(window: Window, page: ServedPage) -> None:
    fill(page, 0)
    harmless, _ = make_machine("harmless", phase="Pending", message="no quota")
    page.api.put(harmless)
    page.api.put(make_event(harmless, "event", "boom"))
    page.source.log.write_text("INFO harmless\n")
    texts = [text for text in HOSTILE if "\ud800" not in text and len(text) < 500]
    for text in texts:
        for obj in make_machine(text, phase="Pending", message=text):
            page.api.put(obj)
    machine, _ = make_machine("hostile", phase=texts[0], message=texts[2])
    machine["metadata"]["annotations"] = {f"a{n}": text for n, text in enumerate(texts)}
    machine["status"]["conditions"] = [
        {"type": text, "status": text, "reason": text, "message": text} for text in texts
    ]
    page.api.put(machine)
    open_page(window, page)
    window.press(window.find("button.name", "Machine/harmless"), ENTER)
    window.wait_text("Events (1)", ".details")
    window.wait_text("INFO harmless", ".logs")
    types = set(window.run(READ_TYPES))
    window.press(window.find("button.name", "Machine/hostile"), ENTER)
    window.wait_text(texts[2], ".details")
    for number, text in enumerate(texts):
        page.api.put(make_event(machine, f"event-{number}", text))
    with page.source.log.open("ab") as log:
        log.write("".join(f"{text}\n" for text in texts).encode())
    window.wait_text(f"Events ({len(texts)})", ".details")
    window.wait_text("owner/name#2", ".logs")
    assert set(window.run(READ_TYPES)) <= types
    assert window.count("script") == 1
    assert window.count("img, iframe, object, a, [onerror], [onclick], [onfocus]") == 0
    assert window.read_messages() == []


def test_without_the_key_nothing_is_shown(window: Window, page: ServedPage) -> None:
    fill(page, 1)
    window.open(page.address)
    window.press(window.find("input[name=key]"), "wrong", ENTER)
    window.wait_text("refuses this key")
    window.press(window.find("input[name=key]"), page.key, ENTER)
    window.wait_text("Cluster/demo")
    assert page.key not in window.driver.page_source


def test_ends_are_shown_with_the_last_state(
    window: Window, page: ServedPage, capfd: pytest.CaptureFixture[str]
) -> None:
    fill(page, 1)
    open_page(window, page)
    page.source.data["components"] = [
        {"name": "manager", "state": "restarting", "restarts": 1, "reason": "Killed"}
    ]
    window.wait_text("manager is restarting: Killed", ".notice")
    page.source.data["running"] = False
    window.wait_text("The lab has ended", ".notice")
    page.end()
    # Without a traceback, although a tab was open.
    assert capfd.readouterr().err == ""
    window.wait_text("No connection", ".notice")
    window.wait_text("Cluster/demo")


def test_of_five_thousand_machines_the_first_are_shown_before_the_rest_is_read(
    window: Window, tmp_path: Path
) -> None:
    with serve_api(tmp_path) as (api, client):
        for obj in [
            *make_cluster(),
            *(each for n in range(5_000) for each in make_machine(f"m-{n}")),
        ]:
            api.put(obj)
        api.may_continue.clear()
        with serve_page_of(api, client, tmp_path) as page:
            window.open(page.opener.as_uri())
            window.wait_text("500 Machines")
            window.wait_text("Reading the cluster: 1000 of 10000 objects")
            assert window.find_violations("light") == []
            api.may_continue.set()
            window.wait_text("5000 Machines")
            window.wait(lambda: window.count("progress") == 0)


def test_of_five_thousand_machines_only_what_changed_is_drawn(
    window: Window, page: ServedPage
) -> None:
    fill(page, 5_000)
    for obj in make_machine("slow", phase="Provisioning", message="no quota"):
        page.api.put(obj)
    window.open(page.opener.as_uri())
    # Each kind is read on its own, and so are the servers; equal Machines look the same at the end.
    window.wait_text("10002 ok")
    window.wait_text("Server/slow")
    window.wait_text("5000 Machines")
    assert window.count("tbody tr") == 7
    window.run(OBSERVE_ROWS)
    machine, infrastructure = make_machine("later", phase="Provisioning", message="no room")
    page.api.put(machine)
    # Infrastructure without its Machine would be among the other objects for a moment.
    window.wait_text("Machine/later")
    page.api.put(infrastructure)
    window.wait_text("Server/later")
    changed = set(window.run("return [...window.changed]"))
    assert changed == {"Machine/later", "AcmeMachine/later", "Server/later"}
    assert window.count("tbody tr") == 10
