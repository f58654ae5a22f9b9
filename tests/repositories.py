"""Add authored code to generated repositories, and run them without installation."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bytecode import RUNTIME, add_bytecode

_SERVER = Path(__file__).with_name("forking.py")

AUTHORED = ("src", "templates", "tests")
"""The folders of an example that its author would write in the generated repository."""
PYTEST_VARIABLES = {
    # Rewriting the kit's assertions takes longer than most of its tests.
    "PYTEST_ADDOPTS": "--assert=plain",
    # A repository needs none of the plugins that are installed here, and they import a lot.
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
}
"""Variables for pytest in a generated repository."""


def has_authored_code(example: Path) -> bool:
    """Return whether an example has code besides its description."""
    return any((example / name).is_dir() for name in AUTHORED)


def add_authored_code(example: Path, repository: Path) -> None:
    """Copy the authored code of an example, if there is any, over the scaffolds."""
    for name in AUTHORED:
        if not (example / name).is_dir():
            continue
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(example / name, repository / name, dirs_exist_ok=True, ignore=ignored)


def import_path(repository: Path) -> str:
    """Return PYTHONPATH for a process that runs the code of ``repository``.

    A copy of the runtime there gets bytecode.
    """
    vendor = repository / "vendor"
    if vendor.is_dir():
        add_bytecode(vendor)
    return os.pathsep.join([str(repository / "src"), str(runtime_folder(repository))])


def runtime_folder(repository: Path) -> Path:
    """Return the folder that ``repository`` imports the runtime from."""
    vendor = repository / "vendor"
    return vendor if vendor.is_dir() else RUNTIME


def run_module(repository: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python in ``repository``, such as pytest, with its code on the path."""
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=repository,
        env=_environment(repository),
        capture_output=True,
        text=True,
        timeout=1800,
    )


def _environment(repository: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": import_path(repository.resolve()),
        "PYTHONDONTWRITEBYTECODE": "1",
        **PYTEST_VARIABLES,
    }


@dataclass(frozen=True)
class PytestServer:
    """A process that runs pytest in one repository, without importing the runtime each time."""

    process: subprocess.Popen[str]
    output: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run pytest with the repository's current code; stderr is part of stdout."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([str(self.output), *arguments]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, "the server of pytest has ended"
        shown = self.output.read_text(encoding="utf-8")
        return subprocess.CompletedProcess(arguments, int(answer), shown)


@contextlib.contextmanager
def start_pytest_server(repository: Path) -> Iterator[PytestServer]:
    """Start a process that imports the runtime of ``repository`` once and forks for each run.

    It imports no code of the author before a run, so that changed files are read again.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-P", str(_SERVER)],
            cwd=repository,
            env=_environment(repository),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            yield PytestServer(process, Path(folder) / "output")
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()
