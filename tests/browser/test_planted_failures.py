"""A reader finds in the page alone why a Machine does not become Ready: four planted failures.

Reasons and messages are those of the runtime, in the conditions and log records that it writes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from capsmith_runtime.contract.constants import REASON_WAITING_FOR_BOOTSTRAP
from capsmith_runtime.fault_injection import LoginRefused
from capsmith_runtime.reconcile.status_reporter import describe_failure
from tests.browser.objects import (
    ACME,
    CREATED,
    DEMO,
    JSON,
    condition,
    make,
    make_cluster,
    make_machine,
    write_record,
)
from tests.browser.served import ServedPage, serve_page
from tests.browser.window import ENTER, Window

METHOD = "AcmeMachineReconciler.reconcile_normal"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    """A page on which each test puts a Machine of its own."""
    with serve_page(tmp_path_factory.mktemp("lab")) as served:
        for obj in make_cluster():
            if obj["kind"] == "AcmeCluster":
                obj["spec"]["identityRef"] = {"kind": "Secret", "name": "acme-login"}
            served.api.put(obj)
        yield served


def put(lab: ServedPage, name: str, reason: str = "", message: str = "") -> None:
    """Create a Machine whose infrastructure is not ready for a reason, as core copies it."""
    machine, infrastructure = make_machine(name, phase="Provisioning")
    for obj, type in ((machine, "InfrastructureReady"), (infrastructure, "Ready")):
        found = [condition(type, "False", message, reason)] if reason else []
        obj["status"]["conditions"] = found
        lab.api.put(obj)


def log(lab: ServedPage, *lines: str) -> None:
    with lab.source.log.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


def end_call(name: str, result: str, error: str, retry_seconds: float) -> list[str]:
    """Return the records of a call that fails after a second."""
    about: JSON = {"controller": "AcmeMachine", "key": f"default/{name}"}
    call, failure = {**about, "method": METHOD}, {**about, "error": error}
    return [
        write_record(2, "DEBUG", "hooks", "call starts", **call),
        write_record(3, "DEBUG", "hooks", "call ends", **call, result=result, seconds=1.0),
        write_record(
            3, "ERROR", "controller", "reconcile failed", **failure, retry_seconds=retry_seconds
        ),
    ]


def look(window: Window, lab: ServedPage, name: str) -> None:
    """Open the page and select a Machine, as a reader who looks for the reason does."""
    window.open(lab.opener.as_uri())
    window.press(window.find("button.name", f"AcmeMachine/{name}"), ENTER)
    window.wait_text(f"AcmeMachine/{name}", ".details h2")


def read_row(window: Window, title: str) -> str:
    """Return the text of the row of an object, given as kind and name; empty if it has no row."""
    find = "[...document.querySelectorAll('.tree button.name')].find(each => each.innerText === "
    return str(window.run(f"return {find}arguments[0])?.closest('tr').innerText || ''", title))


def wait_row(window: Window, title: str, text: str) -> None:
    """Wait until the row of an object has a text: each kind is watched on its own."""
    window.wait(lambda: text in read_row(window, title))


def wait_row_without(window: Window, title: str, text: str) -> None:
    """Wait until an object has a row without a text."""

    def is_there() -> bool:
        row = read_row(window, title)
        return title in row and text not in row

    window.wait(is_there)


def test_wrong_credentials(window: Window, lab: ServedPage) -> None:
    put(lab, "login", *describe_failure(LoginRefused()))
    log(lab, *end_call("login", "LoginRefused", str(LoginRefused()), 4.0))
    look(window, lab, "login")
    failure = "(LoginRefused): 401 Unauthorized: the cloud refuses the credentials"
    for kind, type in (("Machine", "InfrastructureReady"), ("AcmeMachine", "Ready")):
        text = f"✕ Error: {type} {failure} (Secret default/acme-login)"
        wait_row(window, f"{kind}/login", text)
    window.wait_text("LoginRefused\t401 Unauthorized: the cloud refuses", ".details")
    window.wait_text("after 4.0 s", ".details")


def test_no_bootstrap_data(window: Window, lab: ServedPage) -> None:
    message = "bootstrap.dataSecretName of Machine data is not set"
    put(lab, "data", REASON_WAITING_FOR_BOOTSTRAP, message)
    about = {"kind": "AcmeMachine", "object": "default/data"}
    values: JSON = {**about, "reason": REASON_WAITING_FOR_BOOTSTRAP, "message": message}
    log(lab, write_record(1, "INFO", "reconcile", "waiting", **values))
    look(window, lab, "data")
    reason = f"({REASON_WAITING_FOR_BOOTSTRAP}): {message}"
    wait_row(window, "Machine/data", f"… Waiting: InfrastructureReady {reason}")
    assert "Error" not in read_row(window, "Machine/data")
    assert "(Secret" not in read_row(window, "Machine/data")
    window.wait_text(f"core\t{REASON_WAITING_FOR_BOOTSTRAP}: {message}", ".axis")
    window.wait(lambda: "author's call" not in window.find(".details").text)


def test_exception_of_the_author(window: Window, lab: ServedPage) -> None:
    error = KeyError("flavor")
    put(lab, "bug", *describe_failure(error))
    log(
        lab,
        *end_call("bug", "KeyError", "KeyError: 'flavor'", 1.0),
        "Traceback (most recent call last):",
        '  File "/acme/controllers/acme_machine.py", line 31, in reconcile_normal',
        "KeyError: 'flavor'",
    )
    look(window, lab, "bug")
    wait_row(window, "AcmeMachine/bug", "✕ Error: Ready (InternalError): KeyError: 'flavor'")
    window.wait_text("author's call\treconcile_normal KeyError", ".axis")
    window.press(window.find(".logs input"), " ")
    window.wait_text('acme_machine.py", line 31, in reconcile_normal', ".logs pre")


def test_cloud_that_hangs(window: Window, lab: ServedPage) -> None:
    put(lab, "hanging")
    since = int(time.time()) - datetime.fromisoformat(CREATED).timestamp() - 42
    about: JSON = {"controller": "AcmeMachine", "key": "default/hanging", "method": METHOD}
    log(lab, write_record(since, "DEBUG", "hooks", "call starts", **about))
    look(window, lab, "hanging")
    window.wait_text(f"AcmeMachine/hanging: {METHOD} has been running for ", ".details .notice")
    begin = datetime.fromtimestamp(
        datetime.fromisoformat(CREATED).timestamp() + since, UTC
    ).strftime("%H:%M:%S")
    for kind in ("Machine", "AcmeMachine"):
        text = f"⧗ Running AcmeMachine/hanging reconcile_normal since {begin} UTC ("
        wait_row(window, f"{kind}/hanging", text)
    assert [*window.find_violations("light"), *window.find_violations("dark")] == []
    # The Machine itself shows it, too.
    window.press(window.find("button.name", "Machine/hanging"), ENTER)
    window.wait_text("has been running for", ".details .notice")
    # A call that ends is no longer in the rows.
    log(lab, *end_call("hanging", "Ready", "", 4.0))
    for kind in ("Machine", "AcmeMachine"):
        wait_row_without(window, f"{kind}/hanging", "Running")


def test_a_long_reason_is_shown_whole(window: Window, lab: ServedPage) -> None:
    message = f"the cloud has no room in {', '.join(f'zone-{number}' for number in range(60))}"
    put(lab, "long", "OutOfRoom", message)
    look(window, lab, "long")
    wait_row(window, "AcmeMachine/long", message)
    is_cut = (
        "[...document.querySelectorAll('.tree td')].some(td => td.scrollWidth > td.clientWidth)"
    )
    assert window.run(f"return {is_cut}") is False


def test_objects_without_a_condition_and_in_deletion(window: Window, lab: ServedPage) -> None:
    """The texts of such rows do not begin with a condition's type."""
    new = make("MachineDeployment", "new", labels=DEMO, spec={"replicas": 1})
    status: JSON = {"initialization": {"provisioned": False}}
    ownerless = make("AcmeMachine", "ownerless", version=ACME, labels=DEMO, status=status)
    deleted, _ = make_machine("deleted")
    deleted["metadata"]["deletionTimestamp"] = CREATED
    message = "Drain not completed yet (started at 08:00)"
    deleted["status"]["conditions"] = [condition("Deleting", "True", message, "DrainingNode")]
    for obj in (new, ownerless, deleted):
        lab.api.put(obj)
    window.open(lab.opener.as_uri())
    text = "… Waiting: no status yet: its controller has not written any"
    wait_row(window, "MachineDeployment/new", text)
    wait_row(window, "AcmeMachine/ownerless", "… Waiting: no owner yet")
    wait_row(window, "Machine/deleted", f"\N{MINUS SIGN} Deleting: {message}")
