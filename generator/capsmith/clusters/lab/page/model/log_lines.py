"""Log lines of all components: which object a line is about, and how severe it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

from capsmith.clusters.lab.page.model.conditions import JSON
from capsmith.clusters.lab.page.model.hiding import hide_in_line
from capsmith.printable import make_printable

_SERVERS = re.compile(r"etcd|apiserver|controllers|workload-.*")
"""Components whose many lines seldom concern a provider."""
_MAX_LINE = 4_000
"""Characters of a line that are shown."""
_NAME = r"A-Za-z0-9.\-"
_LEVEL = re.compile(
    r"^(?:[IWEF]\d{4}\s|\S+\s+(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL)\s)|\"level\":\s*\"(\w+)\""
)
_CONTINUED = re.compile(r"\s|Traceback |[\w.]+(?:Error|Exception|Refused)\b")
_LEVELS = {"E": "error", "F": "error", "C": "error", "W": "warning"}


@dataclass(frozen=True)
class LogFilter:
    """Which lines are shown."""

    component: str = ""
    """Name of the only component; empty for all but the servers of Kubernetes."""
    name: str = ""
    """Name of an object that lines must mention; empty for all lines."""

    def select(self, component: str, lines: list[str], *, is_shown: bool = False) -> list[str]:
        """Return the lines of a component that are shown.

        Lines of a traceback are shown with the line before them.  ``is_shown`` is whether the line
        before the first one is shown.
        """
        if component != self.component and (self.component or _SERVERS.fullmatch(component)):
            return []
        if not self.name:
            return lines
        selected = []
        for line in lines:
            if not _CONTINUED.match(line):
                is_shown = is_about(line, self.name)
            if is_shown:
                selected.append(line)
        return selected


def is_about(line: str, name: str) -> bool:
    """Return whether a line has the whole name, not only as a part of a longer one.

    Both log formats of managers and klog's put names between quotes, slashes, ``=`` and spaces.
    """
    if name not in line:  # cheap: most lines are about something else
        return False
    return re.search(rf"(?<![{_NAME}]){re.escape(name)}(?![{_NAME}])", line) is not None


def get_level(line: str) -> str:
    """Return ``error``, ``warning`` or, for all other lines, an empty string."""
    match = _LEVEL.search(line[:200])
    if match is None:
        return ""
    word = match[1] or match[0].split()[-1] if match[0][:1] not in "IWEF" else match[0][0]
    return _LEVELS.get(word[:1].upper(), "")


def describe_line(component: str, line: str) -> JSON:
    """Return a line as JSON data, with control characters made visible and secrets hidden."""
    text = line if len(line) <= _MAX_LINE else f"{line[:_MAX_LINE]} … cut"
    text = make_printable(hide_in_line(text).replace("\t", "    "))
    return {"component": component, "level": get_level(line), "text": text}
