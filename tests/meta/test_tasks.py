"""README, Makefile and ./dev agree on the developer tasks."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.terminal import on_terminal

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["sh", str(ROOT / "dev"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)


@pytest.fixture(scope="module")
def tasks() -> list[str]:
    return [line.split()[0] for line in run("help").stdout.splitlines()]


def test_the_makefile_has_the_same_tasks(tasks: list[str]) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^TASKS := (.*)$", makefile, re.MULTILINE)
    assert targets.split() == tasks


def test_commands_of_the_readme(tasks: list[str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert blocks == ["./dev demo\n", "./dev test\n"]
    assert {"demo", "test"} <= set(tasks)


def test_an_unknown_task_is_a_usage_error() -> None:
    result = run("tset")
    assert result.returncode == 2
    assert result.stderr == "dev: no task tset; ./dev help shows them\n"


def test_another_python_has_to_exist() -> None:
    command = ["sh", str(ROOT / "dev"), "demo"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": "no-such-python"}
    result = subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert "no-such-python has to be Python 3.11 or later" in result.stderr


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with ./dev and make, where `docs` prints the Python that make receives.

    The first task creates the environment, which takes seconds; later tasks find it.
    """
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("dev", "Makefile"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "requirements").mkdir()
    (folder / "requirements" / "docs.txt").touch()
    # In place of the documentation's program: another make, and what it was given.
    (folder / "mkdocs.py").write_text(
        "import subprocess, sys\n"
        "sys.exit(subprocess.call(['make', '--no-print-directory', '-f', 'inner']))\n"
    )
    (folder / "inner").write_text(
        "PYTHON ?= its own\nall:\n\t@echo \"python: $(PYTHON)\"; test '$(origin PYTHON)' = file\n"
    )
    return folder


def make_wheel(folder: Path, name: str) -> str:
    """Write a package without modules, and return its line in a file of requirements."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files = {
        "METADATA": metadata,
        "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for each, text in files.items():
            wheel.writestr(f"{name}-1.0.dist-info/{each}", text)
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.mark.parametrize("is_intact", [True, False], ids=["intact", "tampered"])
def test_a_terminal_shows_how_far_the_installation_is(tmp_path: Path, is_intact: bool) -> None:
    lines = "".join(make_wheel(tmp_path, name) for name in ("alpha", "beta"))
    if not is_intact:
        (tmp_path / "beta-1.0-py3-none-any.whl").write_bytes(b"other")
    pinned = tmp_path / "pinned.txt"
    pinned.write_text(lines)
    # The functions without a task, which would create an environment first.
    functions, _, _ = (ROOT / "dev").read_text(encoding="utf-8").partition("\ntask=")
    script = f'{functions}\ninstall_pinned "$1" "$2"; echo "the task runs"'
    places = {"PIP_FIND_LINKS": str(tmp_path), "PIP_TARGET": str(tmp_path / "installed")}
    with on_terminal(
        ["sh", "-c", script, "sh", sys.executable, str(pinned)], {**places, "PIP_NO_INDEX": "1"}
    ) as terminal:
        terminal.read_rest()
        code = terminal.process.wait()
    assert "\x1b[K  package 1 of 2: alpha-1.0" in terminal.shown
    assert "\x1b[K  package 2 of 2: beta-1.0" in terminal.shown
    assert ("the task runs" in terminal.shown) is is_intact
    assert (code == 0) is is_intact


@pytest.mark.parametrize(
    "command",
    [["sh", "dev", "docs"], ["make", "docs"], ["make", "docs", f"PYTHON={sys.executable}"]],
    ids=["dev", "make", "make with an argument"],
)
def test_the_chosen_python_is_not_passed_on(checkout: Path, command: list[str]) -> None:
    """A task's tests run make in generated repositories, which have environments of their own."""
    done = subprocess.run(
        command,
        cwd=checkout,
        env={**os.environ, "PYTHON": sys.executable},
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "python: its own\n" in done.stdout
    # Without a terminal only the first line says that an environment is created.
    assert done.stderr in ("creating build/docs-venv\n", "")
