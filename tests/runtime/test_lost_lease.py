"""A manager that has lost its lease ends, and never releases the lease while author code runs."""

from __future__ import annotations

import signal
import time

import pytest

from tests.runtime.support.manager_process import ENDS_WITHIN, running_manager, wait_for

LEASE = [
    "--leader-elect",
    "--leader-elect-namespace=acme-system",
    "--leader-elect-lease-duration=6s",
    "--leader-elect-renew-deadline=3s",
    "--leader-elect-retry-period=500ms",
]
SHORT_SECONDS = 2
SHORT_LEASE = [
    "--leader-elect",
    "--leader-elect-namespace=acme-system",
    f"--leader-elect-lease-duration={SHORT_SECONDS}s",
    "--leader-elect-renew-deadline=1s",
    "--leader-elect-retry-period=200ms",
]
AUTHORS = ["handler_thread", "default_executor", "own_pool", "event_loop", "cleanup"]


@pytest.mark.parametrize("author", AUTHORS)
def test_a_manager_that_loses_its_lease_ends_at_once(author: str) -> None:
    """No exit waits for a thread, and the event loop may be blocked."""
    with running_manager(author, *LEASE, "--refuse-renewals") as process:
        out, log = process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 1, log
    assert "create begins" in out
    assert "holder ''" not in out, "the next leader must wait until the lease expires"
    assert "the process ends" in log


@pytest.mark.parametrize("author", [each for each in AUTHORS if each != "event_loop"])
def test_a_stopping_manager_keeps_its_lease_while_author_code_runs(author: str) -> None:
    with running_manager(author, *LEASE, "--graceful-shutdown-timeout=500ms") as process:
        wait_for(process, "create begins")
        process.send_signal(signal.SIGTERM)
        out, log = process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 1, log
    assert "holder ''" not in out
    assert "reconciles did not end" in log


def test_a_second_signal_ends_a_stopping_manager() -> None:
    with running_manager("handler_thread", *LEASE) as process:
        wait_for(process, "create begins")
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 1
    assert "holder ''" not in out


@pytest.mark.parametrize("author", ["handler_thread", "own_pool"])
def test_a_manager_without_a_lease_ends_while_author_code_runs(author: str) -> None:
    with running_manager(author, "--graceful-shutdown-timeout=500ms") as process:
        wait_for(process, "create begins")
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 1, log


@pytest.mark.parametrize("author", ["request", "handler_thread"])
def test_a_frozen_manager_does_nothing_after_its_lease_has_expired(author: str) -> None:
    """The next leader may have deleted the Machine whose server was about to be created.

    Proves: MG-02.
    """
    with running_manager(author, *SHORT_LEASE) as process:
        wait_for(process, "create begins")
        process.send_signal(signal.SIGSTOP)
        time.sleep(SHORT_SECONDS)  # nothing that a frozen process could report
        process.send_signal(signal.SIGCONT)
        out, log = process.communicate(timeout=ENDS_WITHIN)
    assert "create ends" not in out
    assert process.returncode not in (None, 0), log
