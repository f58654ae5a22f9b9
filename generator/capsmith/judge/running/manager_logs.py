"""Read what managers log during a check, with secret values removed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from typing import Protocol

from capsmith.clusters.hiding import HIDDEN, KeyHider, has_key_end
from capsmith.clusters.processes.kube import JSON, ApiError, KubeClient
from capsmith.judge.running.model import LogPart

_MAX_BYTES = 1024 * 1024
"""Maximum number of bytes to read from the end of a log."""
_MAX_LINES = 200
"""Number of lines to keep of each log."""


class LogSource(Protocol):
    """Provides what a provider's managers log during a conformance run."""

    def begin_check(self) -> None:
        """Make :meth:`read` skip everything logged so far."""

    def read(self, hide: Callable[[str], str]) -> tuple[LogPart, ...]:
        """Return the last lines that each manager has logged since :meth:`begin_check`.

        ``hide`` replaces secret values in a line.
        """


class PodLogs:
    """Reads the logs of managers that run as Pods, or nothing if the user may not read them."""

    def __init__(self, client: KubeClient, namespaces: Sequence[str]) -> None:
        """Create a reader for the logs of all Pods in the managers' namespaces."""
        self._client = client
        self._namespaces = namespaces
        self._begin = time.monotonic()

    def begin_check(self) -> None:
        """Make :meth:`read` skip everything logged so far, except for the last second."""
        self._begin = time.monotonic()

    def read(self, hide: Callable[[str], str]) -> tuple[LogPart, ...]:
        """Return each container's last lines since :meth:`begin_check`, with timestamps.

        ``hide`` replaces secret values in a line.
        """
        parts: list[LogPart] = []
        for namespace in self._namespaces:
            # A run does not fail because its user may not read logs.
            with suppress(ApiError, OSError, HTTPException, LookupError):
                for pod in self._client.list("v1", "Pod", namespace):
                    parts += self._read_pod(pod, hide)
        return tuple(parts)

    def _read_pod(self, pod: JSON, hide: Callable[[str], str]) -> Iterator[LogPart]:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        path = self._client.path("v1", "Pod", name, namespace, "log")
        for container in pod["spec"]["containers"]:
            query = {
                "container": str(container["name"]),
                "sinceSeconds": str(math.ceil(time.monotonic() - self._begin) or 1),
                "tailLines": str(_MAX_LINES),
                # A line with its time is never JSON, which the client would decode.
                "timestamps": "true",
            }
            with suppress(ApiError):
                text = str(self._client.request("GET", path, query=query).get("text") or "")
                lines = tuple(map(hide, _hide_keys(text.splitlines())))
                if lines:
                    yield LogPart(f"{name}/{container['name']}", lines)


class ManagerLogs:
    """Reads the logs of managers that the run started as processes."""

    def __init__(self, find_logs: Callable[[], Mapping[str, Path]]) -> None:
        """Create a reader. ``find_logs`` returns the logs' paths by name."""
        self._find_logs = find_logs
        self._sizes: dict[str, int] = {}

    def begin_check(self) -> None:
        """Make :meth:`read` skip everything logged so far."""
        self._sizes = {name: _read_size(path) for name, path in self._find_logs().items()}

    def read(self, hide: Callable[[str], str]) -> tuple[LogPart, ...]:
        """Return the last lines that each manager has logged since :meth:`begin_check`.

        ``hide`` replaces secret values in a line.
        """
        parts = []
        for name, path in sorted(self._find_logs().items()):
            lines = _read_lines(path, self._sizes.get(name, 0))
            if lines:
                hidden = map(hide, _hide_keys(lines)[-_MAX_LINES:])
                parts.append(LogPart(name, tuple(hidden)))
        return tuple(parts)


def _read_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_lines(path: Path, start: int) -> list[str]:
    try:
        with path.open("rb") as log:
            start = max(start, _read_size(path) - _MAX_BYTES)
            log.seek(start)
            return log.read(_MAX_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return []


def _hide_keys(lines: Sequence[str]) -> list[str]:
    """Return the lines, with lines of private keys replaced, even of one that began earlier."""
    hidden = KeyHider().hide(list(lines))
    ends = [number for number, line in enumerate(hidden) if has_key_end(line)]
    return [HIDDEN] * (ends[-1] + 1) + hidden[ends[-1] + 1 :] if ends else hidden
