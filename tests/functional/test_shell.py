"""capsmith in a shell: completion, versions, and what a terminal shows while a run takes long."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from capsmith import __version__
from capsmith.cli import main
from capsmith_runtime.version import __version__ as runtime_version
from tests.terminal import on_terminal

WORK = """
import sys
from capsmith.working import show_working
with show_working("Generating [bold]acme", delay=float(sys.argv[1])):
    sys.stdin.readline()
print("done")
"""


@pytest.fixture
def capsmith(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a shell that finds the command capsmith."""
    command = tmp_path / "bin" / "capsmith"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nfrom capsmith.cli import main\nmain()\n")
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("capsmith gen", "generate"),
        ("capsmith completion z", "zsh"),
        ("capsmith new --no", "--no-input"),
    ],
)
def test_bash_completes(capsmith: dict[str, str], typed: str, expected: str) -> None:
    words = " ".join(typed.split())
    script = f"""
        eval "$(capsmith completion bash)"
        COMP_WORDS=({words}); COMP_CWORD={len(typed.split()) - 1}
        _capsmith_completion capsmith
        printf '%s\\n' "${{COMPREPLY[@]}}"
        complete -p capsmith
    """
    done = subprocess.run(["bash", "-c", script], env=capsmith, capture_output=True, text=True)

    *completed, registered = done.stdout.splitlines()
    assert completed == [expected], done.stderr
    assert registered == "complete -o nosort -F _capsmith_completion capsmith"


@pytest.mark.parametrize(("shell", "start"), [("zsh", "#compdef capsmith"), ("fish", "function _")])
def test_other_shells_get_a_script(shell: str, start: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])

    assert result.exit_code == 0
    assert result.output.startswith(start)


def test_an_unknown_shell_is_refused() -> None:
    result = CliRunner().invoke(main, ["completion", "tcsh"])

    assert result.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in result.output


def test_version_names_runtime_and_contract_data() -> None:
    lines = CliRunner().invoke(main, ["--version"]).output.splitlines()

    assert lines[:3] == [
        f"capsmith {__version__}",
        f"capsmith_runtime {runtime_version}",
        "contracts v1beta1, v1beta2",
    ]
    assert lines[3].startswith("core v1.")


def _on_a_terminal(delay: str, until: str) -> str:
    """Run a block of work on a terminal, let it end after ``until`` was shown, return all."""
    with on_terminal([sys.executable, "-c", WORK, delay]) as terminal:
        terminal.wait_for(lambda shown: until in shown)
        terminal.press_enter()
        terminal.wait_for(lambda shown: "done" in shown)
        assert terminal.process.wait() == 0
    return terminal.shown


HELP = """
import sys
import click
before = set(sys.modules)
from capsmith.cli import main
try:
    main(["--help"])
finally:
    print("MODULES", *sorted(set(sys.modules) - before))
"""


def test_help_imports_little_more_than_click() -> None:
    """No module of a command is imported; benchmarks.generate measures what this takes."""
    command = [sys.executable, "-c", HELP]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    _, *names = done.stdout[done.stdout.index("MODULES") :].split()
    roots = {name.partition(".")[0] for name in names}
    assert roots <= {"capsmith", "click", *sys.stdlib_module_names}
    own = {name for name in names if name.startswith("capsmith.")}
    assert own == {"capsmith.cli", "capsmith.cli.group"}
    slow = {
        "asyncio",
        "dataclasses",
        "email",
        "http",
        "importlib.metadata",
        "json",
        "shutil",
        "ssl",
    }
    assert slow.isdisjoint(names)


COMPLETE = """
import sys
from capsmith.cli import main
try:
    main(prog_name="capsmith", complete_var="_CAPSMITH_COMPLETE")
finally:
    print("MODULES", *sorted(name for name in sys.modules if name.startswith("capsmith.")))
"""


def test_completing_a_command_imports_none(capsmith: dict[str, str]) -> None:
    typed = {"COMP_WORDS": "capsmith ", "COMP_CWORD": "1", "_CAPSMITH_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", COMPLETE]
    done = subprocess.run(command, env=capsmith | typed, capture_output=True, text=True)

    *completed, modules = done.stdout.splitlines()
    assert completed == [f"plain,{name}" for name in sorted(main.references)], done.stderr
    assert modules.split() == ["MODULES", "capsmith.cli", "capsmith.cli.group"]


def test_a_terminal_shows_work_that_takes_long() -> None:
    assert "[bold]acme" in _on_a_terminal("0", "[bold]acme")


def test_a_terminal_does_not_show_short_work() -> None:
    assert "acme" not in _on_a_terminal("3600", "")


def test_a_pipe_stays_silent() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORK, "0"], input="\n", capture_output=True, text=True
    )

    assert (done.stdout, done.stderr) == ("done\n", "")
