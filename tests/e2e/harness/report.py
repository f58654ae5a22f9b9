"""Measurements of a session: seconds of each phase, and the controllers' memory and CPU time."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from capsmith.clusters.processes.process import Process


class Report:
    """Collects measurements, which are printed at the end of the session and kept as JSON."""

    def __init__(self) -> None:
        self._phases: list[dict[str, Any]] = []
        self._processes: list[dict[str, Any]] = []

    @contextmanager
    def phase(self, stack: str, name: str) -> Iterator[None]:
        """Measure the duration of the code inside, even if it fails."""
        began = time.monotonic()
        outcome = "failed"
        try:
            yield
            outcome = "ok"
        finally:
            seconds = round(time.monotonic() - began, 2)
            entry = {"stack": stack, "phase": name, "seconds": seconds, "outcome": outcome}
            self._phases.append(entry)

    def process(self, process: Process) -> None:
        """Note what a process has used; call it while the process still runs."""
        if not process.running:
            return
        try:
            usage = process.usage()
        except (OSError, StopIteration):
            return  # it has ended in this moment, and is started again
        self._processes.append(
            {
                "process": process.name,
                "peak_rss_mib": round(usage.peak_rss_mib, 1),
                "cpu_seconds": round(usage.cpu_seconds, 2),
            }
        )

    def data(self) -> dict[str, Any]:
        """Return all measurements in a form that can be sent between processes."""
        return {"phases": self._phases, "processes": self._processes}

    def add(self, data: dict[str, Any]) -> None:
        """Add the measurements of another process."""
        self._phases += data.get("phases", [])
        self._processes += data.get("processes", [])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(self.data(), indent=2) + "\n")

    def lines(self) -> list[str]:
        """Return the report as text."""
        found = [
            f"{each['stack']:<14} {each['phase']:<44} {each['seconds']:>7.2f} s"
            + ("" if each["outcome"] == "ok" else "  FAILED")
            for each in self._phases
        ]
        found += [
            f"{each['process']:<42} peak {each['peak_rss_mib']:>6.1f} MiB"
            f" {each['cpu_seconds']:>7.2f} s CPU"
            for each in self._processes
        ]
        return found
