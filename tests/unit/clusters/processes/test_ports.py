"""Ports for components: tests that run side by side must not get in each other's way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from capsmith.clusters.processes import process
from capsmith.clusters.processes.process import free_port

_ROOT = Path(__file__).parents[4]
_EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
_ELSEWHERE = """
import sys
from capsmith.clusters.processes import process
process._PORTS = range(*map(int, sys.argv[1:]))
print(process.free_port())
"""


def test_no_client_is_given_such_a_port() -> None:
    lowest, _ = map(int, _EPHEMERAL.read_text().split())
    if lowest <= 1024:
        pytest.skip("this machine gives its clients all ports")
    assert {free_port() < lowest for _ in range(20)} == {True}


def test_a_port_is_returned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither here nor in another process, although nothing listens on it yet."""
    first = free_port()
    monkeypatch.setattr(process, "_PORTS", range(first, first + 1))
    with pytest.raises(RuntimeError, match="no port is free"):
        free_port()
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE, str(first), str(first + 1)],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "no port is free" in done.stderr
