"""``capsmith new`` as a person runs it, and cookiecutter with its hooks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from capsmith.cli import main
from tests.golden.files import read

ROOT = Path(__file__).parents[3]
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs ``capsmith new`` with its own folder and user configuration."""
    config = tmp_path / "cookiecutterrc"
    config.write_text(f"replay_dir: {tmp_path / 'replay'}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COOKIECUTTER_CONFIG", str(config))
    return lambda *arguments, **typed: CliRunner().invoke(main, ["new", *arguments], **typed)


def test_makes_a_repository(run: Run, tmp_path: Path) -> None:
    result = run("--no-input", "name=acme")

    assert result.exit_code == 0, result.output
    made = read(tmp_path / "cluster-api-provider-acme")
    assert {"provider.yaml", "README.md", ".capsmith/lock.yaml"} <= made.keys()
    again = CliRunner().invoke(main, ["generate", "cluster-api-provider-acme/provider.yaml"])
    assert again.exit_code == 0, again.output
    assert read(tmp_path / "cluster-api-provider-acme") == made


def test_other_names_follow_from_the_kind_of_the_cluster(run: Run, tmp_path: Path) -> None:
    """Capital letters within a name, as in VSphere, cannot follow from the provider's name."""
    result = run("made", "--no-input", "name=vsphere", "cluster_kind=VSphereCluster", "ipam=yes")

    assert result.exit_code == 0, result.output
    spec = (tmp_path / "made" / "provider.yaml").read_text(encoding="utf-8")
    assert "  VSphereMachine:" in spec
    assert "  VSphereIPPool:" in spec
    assert "credentials: VSphereIdentity" in spec
    assert "words: [VSphere]" in spec
    code = tmp_path / "made" / "src" / "cluster_api_provider_vsphere"
    assert (code / "controllers" / "vsphere_machine.py").is_file()
    assert not [path for path in (tmp_path / "made").rglob("*") if "v_sphere" in path.name]
    assert (tmp_path / "made" / "README.md").read_text(encoding="utf-8").startswith("# VSphere\n")


def test_help_lists_the_questions(run: Run) -> None:
    result = run("--help")

    keys = result.output.partition("\nKeys:\n")[2]
    assert "  machine_kind  " in keys
    assert "Contract with Cluster API" in keys


def test_what_followed_from_a_wrong_answer_follows_from_the_right_one(
    run: Run, tmp_path: Path
) -> None:
    wrong = ["Bad Name", "someone", "", "", "MyMachine", *[""] * 11]
    right = ["good", *[""] * 15]

    result = run("made", input="\n".join([*wrong, *right]) + "\n")

    assert result.exit_code == 0, result.output
    spec = (tmp_path / "made" / "provider.yaml").read_text(encoding="utf-8")
    assert "repository: https://github.com/someone/cluster-api-provider-good" in spec
    assert "GoodCluster:" in spec
    assert "MyMachine:" in spec
    assert "The good provider authors" in spec


def test_asks_again_until_the_answers_are_valid(run: Run, tmp_path: Path) -> None:
    wrong = ["Bad Name", *[""] * 15]
    right = ["good", "someone", "https://example.org/a/good", "GoodCluster", "GoodMachine"]

    result = run("made", input="\n".join([*wrong, *right, *[""] * 11]) + "\n")

    assert result.exit_code == 0, result.output
    assert "CC-50" in result.output or "name" in result.output
    spec = (tmp_path / "made" / "provider.yaml").read_text(encoding="utf-8")
    assert "name: good " in spec
    assert "GoodMachine:" in spec


@pytest.mark.parametrize(
    ("machine_kind", "problem"),
    [
        ("M" * 3000, "machine_kind: error answer-unusable: the answer has 3,000 characters"),
        ("My\u00a0Machine", "machine_kind: error answer-unusable: the answer contains the"),
    ],
    ids=["long", "non-breaking blank"],
)
def test_an_unusable_answer_is_reported_by_its_question(
    run: Run, tmp_path: Path, machine_kind: str, problem: str
) -> None:
    wrong = ["good", "someone", "", "", machine_kind, *[""] * 11]

    result = run("made", input="\n".join([*wrong, *[""] * 16]) + "\n")

    assert result.exit_code == 0, result.output
    assert problem in " ".join(result.output.split())
    assert "provider.yaml:" not in result.output
    spec = (tmp_path / "made" / "provider.yaml").read_text(encoding="utf-8")
    assert "GoodMachine:" in spec
    assert "repository: https://github.com/someone/" in spec


def test_an_unusable_answer_without_questions_ends_the_run(run: Run, tmp_path: Path) -> None:
    result = run("made", "--no-input", "--format", "json", f"name={'x' * 3000}")

    assert result.exit_code == 1
    findings = json.loads(result.output)["findings"]
    assert {each["id"] for each in findings} == {"answer-unusable"}
    assert not (tmp_path / "made").exists()


def test_an_invalid_answer_writes_nothing(run: Run, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())

    result = run("made", "--no-input", "--format", "json", "name=Bad Name")

    assert result.exit_code == 1
    assert json.loads(result.output)["findings"]
    assert {path.name for path in set(tmp_path.iterdir()) - before} == {"replay"}


def test_existing_files_are_kept(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "README.md").write_text("mine\n", encoding="utf-8")

    assert run("made", "--no-input").exit_code == 1
    assert [path.name for path in folder.iterdir()] == ["README.md"]
    assert run("made", "--no-input", "--beside-others").exit_code == 0
    assert (folder / "README.md").read_text(encoding="utf-8") == "mine\n"
    assert (folder / "pyproject.toml").is_file()


def test_a_provider_is_never_replaced(run: Run, tmp_path: Path) -> None:
    assert run("made", "--no-input").exit_code == 0
    before = read(tmp_path / "made")

    result = run("made", "--no-input", "-f", "name=other")

    assert result.exit_code == 1
    assert "provider-exists" in result.output
    assert read(tmp_path / "made") == before


def test_one_folder_only(run: Run) -> None:
    assert run("one", "two", "--no-input").exit_code == 2


def _cookiecutter(folder: Path, *arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOME": str(folder),
        "PYTHONPATH": str(ROOT / "generator"),
        **extra,
    }
    return subprocess.run(
        [sys.executable, "-m", "cookiecutter", str(ROOT), "--no-input", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
    )


def test_cookiecutter_makes_the_same(run: Run, tmp_path: Path) -> None:
    done = _cookiecutter(tmp_path, "-o", "baked", "name=acme")

    assert done.returncode == 0, done.stderr
    assert run("made", "--no-input", "name=acme").exit_code == 0
    assert read(tmp_path / "baked" / "cluster-api-provider-acme") == read(tmp_path / "made")


def test_cookiecutter_leaves_nothing_of_invalid_answers(run: Run, tmp_path: Path) -> None:
    done = _cookiecutter(tmp_path, "-o", "baked", "name=Bad Name")

    assert done.returncode == 1
    assert "provider.yaml:" in done.stdout
    assert list((tmp_path / "baked").iterdir()) == []


def test_cookiecutter_keeps_a_provider(run: Run, tmp_path: Path) -> None:
    assert _cookiecutter(tmp_path, "name=acme").returncode == 0
    before = read(tmp_path / "cluster-api-provider-acme")

    done = _cookiecutter(tmp_path, "-f", "name=acme", "licence=MIT")

    assert done.returncode == 1
    assert "already has a provider.yaml" in done.stderr
    assert read(tmp_path / "cluster-api-provider-acme") == before


def test_cookiecutter_reports_when_capsmith_is_missing(run: Run, tmp_path: Path) -> None:
    # A module that cannot be found again, in place of an environment without capsmith.
    hide = tmp_path / "sitecustomize.py"
    hide.write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'capsmith' else find(name, *rest)\n",
        encoding="utf-8",
    )

    done = _cookiecutter(tmp_path, "-o", "baked", PYTHONPATH=str(tmp_path), PATH="/nowhere")

    assert done.returncode == 1
    assert "pip install . in a clone" in done.stderr
    assert list((tmp_path / "baked").iterdir()) == []
