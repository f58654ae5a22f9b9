"""The demonstration of the README: a terminal as SVG, from the record of a real run.

``python -m website.terminal record`` runs the commands and writes the record, which needs Go;
``python -m website.terminal`` makes the picture of the record.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from website.sources import ROOT

RECORD = ROOT / "docs" / "pictures" / "demo.txt"
PICTURE = RECORD.with_suffix(".svg")
COMMANDS = (
    "capsmith new acme --no-input name=acme",
    "cd acme",
    "capsmith lab demo",
    "capsmith lab down",
)
_TERMINAL = {"TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"}
_COLUMNS, _LINE, _LETTER = 100, 19, 7.8
_STYLES = {"$": "#80cbc4", "The Cluster": "#c3e88d"}


def svg(record: str) -> str:
    """Return the picture of a record, the same on every run."""
    lines = [line[:_COLUMNS] for line in record.splitlines()]
    width, height = int(_COLUMNS * _LETTER) + 40, (len(lines) + 3) * _LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" font-family="ui-monospace, Menlo, monospace"'
        ' font-size="13">',
        "<title>capsmith lab demo: a cluster with three Machines Running</title>",
        f'<rect width="{width}" height="{height}" rx="8" fill="#1e272e"/>',
    ]
    for index, color in enumerate(("#ff5f56", "#ffbd2e", "#27c93f")):
        parts.append(f'<circle cx="{22 + 20 * index}" cy="18" r="6" fill="{color}"/>')
    for number, line in enumerate(lines):
        fill = next(
            (color for start, color in _STYLES.items() if line.startswith(start)), "#eceff1"
        )
        parts.append(
            f'<text x="20" y="{(number + 3) * _LINE - 6}" fill="{fill}"'
            f' xml:space="preserve">{escape(line)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def record() -> str:
    """Run the commands in an empty folder, and return what a reader of the terminal sees."""
    shown: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # The commands that are proposed name the program as it is found on PATH.
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        state = {"XDG_STATE_HOME": str(folder / ".state"), "PATH": path}
        for command in COMMANDS:
            shown.append(f"$ {command}")
            if command.startswith("cd "):
                folder /= command.removeprefix("cd ")
                continue
            lines = _run(command, folder, {**os.environ, **state, **_TERMINAL})
            shown += [line.replace(name, "~") for line in lines]
    return "\n".join(shown) + "\n"


def _run(command: str, folder: Path, environment: dict[str, str]) -> list[str]:
    """Run a command with a terminal as its output, and return what is on it in the end."""
    own, its = pty.openpty()
    with tempfile.TemporaryFile("w+") as steps:
        process = subprocess.Popen(
            [sys.executable, "-m", *command.split()],
            cwd=folder,
            env=environment,
            stdout=its,
            stderr=steps,
        )
        os.close(its)
        written = b""
        # Reading fails when the last process has closed the terminal.
        with contextlib.suppress(OSError):
            while part := os.read(own, 4096):
                written += part
        os.close(own)
        steps.seek(0)
        if process.wait():
            raise SystemExit(steps.read())
        # A live table is drawn over the one before.
        frame = written.decode().rpartition("\x1b[1A")[2]
        plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", f"{steps.read()}{frame}")
        return [line.rstrip() for line in plain.replace("\r", "").splitlines() if line.strip()]


if __name__ == "__main__":
    if sys.argv[1:] == ["record"]:
        RECORD.write_text(record(), encoding="utf-8")
    PICTURE.write_text(svg(RECORD.read_text(encoding="utf-8")), encoding="utf-8")
