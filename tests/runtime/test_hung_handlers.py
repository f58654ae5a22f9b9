"""A manager whose handlers all hang: only a restart helps, so its liveness probe fails."""

from __future__ import annotations

import signal

import pytest

from capsmith.clusters.processes.process import free_port, probe_http
from capsmith.clusters.processes.wait import eventually
from tests.runtime.support.manager_process import ENDS_WITHIN, running_manager, wait_for


@pytest.mark.parametrize("author", ["handler_thread", "default_executor", "cleanup"])
def test_a_manager_whose_handlers_all_hang_is_restarted(author: str) -> None:
    """Kubernetes stops a manager that is not healthy; it does not wait for what hangs."""
    address = f"127.0.0.1:{free_port()}"
    healthy = probe_http(f"http://{address}/healthz")
    limits = ["--hook-threads=1", "--hook-timeout=2s", "--exhausted-seconds=0.5"]
    with running_manager(author, *limits, f"--diagnostics-address={address}") as process:
        wait_for(process, "create begins")
        assert healthy()
        eventually(lambda: not healthy(), timeout=ENDS_WITHIN, what="the probe fails")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=ENDS_WITHIN)
    assert process.returncode == 1
