"""The commands that a first run names: they are exact, and lead into the new repository."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from capsmith.cli import main

ACME = Path(__file__).parents[2] / "examples" / "acme" / "provider.yaml"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("home")
    config = home / "cookiecutterrc"
    config.write_text(f"replay_dir: {home}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COOKIECUTTER_CONFIG", str(config))


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result


def following(result: Result) -> list[str]:
    """Return the commands at the end of the output."""
    lines = result.output.splitlines()
    return [line.strip() for line in lines[lines.index("Next:") + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["my provider", "-x"])
def test_the_commands_of_new_run_as_they_are_printed(folder: str, tmp_path: Path) -> None:
    commands = following(run("new", "--no-input", "name=acme", "--", folder))

    assert len(commands) == 3
    # make prints what it would do: the real thing would install packages.
    environment = {**os.environ, "MAKEFLAGS": "-n"}
    assert commands[2] == "capsmith lab demo"
    assert CliRunner().invoke(main, [*commands[2].split()[1:], "--help"]).exit_code == 0
    quick = [each.replace("-m venv", "-m venv --without-pip") for each in commands[:2]]
    script = "\n".join(["set -e", *quick, "pwd", ".venv/bin/python --version"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    where, version = done.stdout.splitlines()[-2:]
    assert where == str(tmp_path / folder)
    assert version.startswith("Python 3")
    assert ".venv/bin/python -m pip install" in done.stdout
    assert ".venv/bin/python -m pytest" in done.stdout


def test_generate_names_them_once() -> None:
    first = run("generate", str(ACME), "-o", "repo")

    assert following(first)[0].startswith("cd repo && ")
    assert "Next:" not in run("generate", str(ACME), "-o", "repo").output


def test_generate_in_the_folder_itself_does_not_enter_it() -> None:
    Path("provider.yaml").write_bytes(ACME.read_bytes())

    assert "cd " not in following(run("generate"))[0]


def test_machines_get_them_as_facts() -> None:
    first = json.loads(run("generate", str(ACME), "-o", "repo", "--format", "json").output)
    again = json.loads(run("generate", str(ACME), "-o", "repo", "--format", "json").output)

    assert len(first["facts"]["next"]) == 3
    assert "facts" not in again


def test_no_commands_after_errors() -> None:
    result = CliRunner().invoke(main, ["new", "--no-input", "name=Bad Name", "made"])

    assert result.exit_code == 1
    assert "Next:" not in result.output
