"""A page as a shell script: the actions of a reader who follows its text alone."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from tests.website.blocks import Block, blocks
from tests.website.pages import ROOT

_SECONDS = 900
_GIT = {
    "GIT_AUTHOR_NAME": "a reader",
    "GIT_AUTHOR_EMAIL": "reader@example.com",
    "GIT_COMMITTER_NAME": "a reader",
    "GIT_COMMITTER_EMAIL": "reader@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}
"""The identity with which a reader commits, and no other configuration of git."""


def steps(page: str) -> list[Block]:
    """Return the files and the commands of a page of docs/; a reader skips console blocks here.

    Those install packages, which the environment of the tests already has.
    """
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [block for block in blocks(text) if block.title or block.language == "sh"]


def script(found: list[Block]) -> str:
    """Return a script that writes the files and runs the commands, in their order."""
    return "".join(_written(block) if block.title else block.text for block in found)


def _written(block: Block) -> str:
    path = shlex.quote(block.title)
    return f'mkdir -p "$(dirname {path})"\nprintf %s {shlex.quote(block.text)} > {path}\n'


def environment(folder: Path, **variables: str) -> dict[str, str]:
    """Return an environment with a `capsmith` on the PATH, and labs in the folder."""
    bin = folder / ".bin"
    bin.mkdir()
    capsmith = bin / "capsmith"
    capsmith.write_text(
        f"#!/bin/sh\nPYTHONPATH='{ROOT / 'generator'}' exec '{sys.executable}' -m capsmith \"$@\"\n"
    )
    capsmith.chmod(0o755)
    path = [str(bin), str(Path(sys.executable).parent), os.environ["PATH"]]
    found = {**os.environ, "PATH": os.pathsep.join(path), **variables}
    return {**found, **_GIT, "XDG_STATE_HOME": str(folder / ".state")}


def run(text: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a folder with a `capsmith` on the PATH; labs are ended."""
    given = environment(folder, **variables)
    argv = ["sh", "-eu", "-c", text]
    with subprocess.Popen(
        argv,
        cwd=folder,
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as shell:
        try:
            stdout, stderr = shell.communicate(timeout=_SECONDS)
        finally:
            # What the page has left running in the background, when it stops half-way.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            end = [str(folder / ".bin" / "capsmith"), "lab", "down", "--all", "--force"]
            subprocess.run(end, env=given, capture_output=True, timeout=120, check=False)
    return subprocess.CompletedProcess(argv, shell.returncode, stdout, stderr)
