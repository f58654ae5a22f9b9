"""Read and follow the logs of a lab."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from capsmith.clusters.lab.errors import LabError
from capsmith.clusters.lab.folder import LabFolder
from capsmith.clusters.lab.status import find_logs

_ALIAS = "manager"
_LINES = 50
_STEP_SECONDS = 0.3


def select_logs(lab: LabFolder, component: str | None) -> dict[str, Path]:
    """Return log files by component name: for ``component``, or for all if that is None.

    `manager` selects all managers of the provider.  Raises LabError if there is no such log.
    """
    found = find_logs(lab)
    if component is None:
        return found
    matching = {
        name: path
        for name, path in found.items()
        if name == component or (component == _ALIAS and name.startswith(f"{_ALIAS}-"))
    }
    if not matching:
        hint = f"Use one of {', '.join(sorted(found))}." if found else "Nothing has started yet."
        raise LabError("lab-component", f"no log of {component}", hint=hint)
    return matching


def read_last_lines(path: Path) -> list[str]:
    """Return the last lines of a log."""
    return path.read_text(errors="replace").splitlines()[-_LINES:]


def follow(
    lab: LabFolder, files: Mapping[str, Path], *, from_start: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the component and text of each new line until the lab ends.

    With ``from_start``, existing lines are included.
    """
    positions = {name: 0 if from_start else path.stat().st_size for name, path in files.items()}
    while True:
        is_running = lab.is_running
        for name, path in files.items():
            text, positions[name] = _new_text(path, positions[name])
            for line in text.splitlines():
                yield name, line
        if not is_running:
            return
        time.sleep(_STEP_SECONDS)


def _new_text(path: Path, position: int) -> tuple[str, int]:
    """Return the complete lines after a position, and the position after those lines."""
    try:
        with path.open("rb") as file:
            # A log that has been rotated begins again.
            if file.seek(0, os.SEEK_END) < position:
                position = 0
            file.seek(position)
            data = file.read()
    except OSError:
        return "", position
    end = data.rfind(b"\n") + 1
    return data[:end].decode(errors="replace"), position + end
