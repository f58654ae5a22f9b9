"""``generate`` in the folders that people have, and what it says about files in them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.conftest import without_privileges
from tests.functional.test_cli import ACME, run, snapshot


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CAPSMITH_CACHE", str(tmp_path.parent / "cache"))


@pytest.mark.parametrize("command", [("generate", ACME, "-o"), ("new", "--no-input")])
def test_the_current_folder_can_be_empty_and_stays_the_current_one(
    command: tuple[str | Path, ...],
) -> None:
    before = Path.cwd().stat().st_ino
    assert run(*command, ".").exit_code == 0
    assert Path("provider.yaml").is_file()
    assert Path.cwd().stat().st_ino == before


def test_a_folder_with_files_of_others_keeps_them() -> None:
    Path("provider.yaml").write_text(ACME.read_text())
    Path("README.md").write_text("mine")
    Path("precious.txt").write_text("mine")
    refused = run("generate")
    assert "README.md, precious.txt" in refused.output
    assert "--beside-others" in refused.output
    assert run("generate", "--beside-others").exit_code == 0
    assert Path("README.md").read_text() == "mine"
    assert Path("precious.txt").read_text() == "mine"
    assert run("generate").exit_code == 0


def test_a_file_of_others_in_the_place_of_a_generated_one_is_named() -> None:
    Path("provider.yaml").write_text(ACME.read_text())
    Path("Makefile").write_text("mine")
    before = snapshot(Path())
    result = run("generate", "-f", "--format", "json")
    report = json.loads(result.output)
    assert result.exit_code == 1
    assert [finding["id"] for finding in report["findings"]] == ["output-not-ours"]
    # What was not done is not told as done.
    assert report["files"] == [{"path": "Makefile", "outcome": "refused"}]
    assert snapshot(Path()) == before


def test_the_authors_files_may_become_anything() -> None:
    run("generate", ACME, "-o", "repo")
    os.chdir("repo")
    Path("README.md").rename("docs/readme.md")
    Path("README.md").symlink_to("docs/readme.md")
    Path("LICENSE").write_bytes(b"caf\xe9")
    (sample,) = Path("config/samples").glob("*_identity.yaml")
    sample.unlink()
    sample.mkdir()
    result = run("generate", "--format", "json")
    assert result.exit_code == 0
    kept = {f["path"] for f in json.loads(result.output)["files"] if f["outcome"] == "kept"}
    assert kept >= {"README.md", "LICENSE", str(sample)}
    assert Path("README.md").is_symlink()


def test_files_of_a_kind_that_has_another_name_now_are_named() -> None:
    spec = Path("provider.yaml")
    spec.write_text(ACME.read_text())
    run("generate")
    spec.write_text(ACME.read_text().replace("AcmeMachine", "AcmeServer"))
    result = run("generate", "--format", "json")
    assert result.exit_code == 0
    left = {f["file"] for f in json.loads(result.output)["findings"]}
    assert "src/cluster_api_provider_acme/controllers/acme_machine.py" in left
    assert "tests/test_acme_machine.py" in left
    assert {f["id"] for f in json.loads(result.output)["findings"]} == {"output-left-over"}
    assert "left-over" not in run("generate").output


def test_a_shared_file_that_both_sides_changed_is_merged() -> None:
    spec = Path("provider.yaml")
    spec.write_text(ACME.read_text())
    run("generate")
    project = Path("pyproject.toml")
    edit = "\n[tool.mine]\nkey = 1\n"
    project.write_text(project.read_text() + edit)
    assert run("generate").exit_code == 0
    spec.write_text(spec.read_text() + "dependencies: [requests]\n")
    result = run("generate")
    assert result.exit_code == 0
    assert "merged: 1 file\n  pyproject.toml\n" in result.output
    assert "requests" in project.read_text()
    assert project.read_text().endswith(edit)
    before = snapshot(Path())
    assert run("generate").exit_code == 0
    assert snapshot(Path()) == before


def test_what_a_later_capsmith_generated_is_left_alone() -> None:
    run("generate", ACME, "-o", "repo")
    lock = Path("repo/.capsmith/lock.yaml")
    text = lock.read_text()
    lock.write_text(text.replace("capsmith: ", "capsmith: 1"))
    before = snapshot(Path("repo"))
    result = run("generate", ACME, "-o", "repo")
    assert result.exit_code == 1
    assert "lock-newer" in result.output + result.stderr
    assert snapshot(Path("repo")) == before
    lock.write_text(text.replace("capsmith: ", "capsmith: 0.2.post3 #"))
    assert run("generate", ACME, "-o", "repo").exit_code == 0
    assert lock.read_text() == text


def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    Path("provider.yaml").write_text(ACME.read_text())
    run("generate", "-o", "elsewhere")  # all that is needed is imported now
    Path("repo").mkdir(mode=0o555)
    with without_privileges():
        result = run("generate", "-o", "repo/new")
    assert result.exit_code == 2
    assert "output-unwritable" in result.stderr


def test_a_file_on_the_path_to_the_folder_is_reported() -> None:
    Path("file").write_text("")
    result = run("generate", ACME, "-o", "file/repo")
    assert result.exit_code == 2
    assert "output-unwritable" in result.stderr


def test_a_loop_of_symlinks_is_reported() -> None:
    Path("loop").symlink_to("loop")
    result = run("generate", ACME, "-o", "loop")
    assert result.exit_code == 2
    assert "output-not-a-folder" in result.output or "output-unwritable" in result.output
    assert run("generate", "loop/provider.yaml").exit_code == 2


@pytest.mark.parametrize("format_", ["text", "json", "html", "markdown"])
def test_a_current_folder_that_was_removed_is_named(format_: str) -> None:
    assert run("generate", ACME, "-o", "repo").exit_code == 0
    repository = Path("repo").resolve()
    removed = Path("removed")
    removed.mkdir()
    os.chdir(removed)
    (Path("..") / removed).rmdir()
    result = run("doctor", repository, "--format", format_)
    if format_ in ("text", "json"):
        assert result.exit_code == 0
    else:
        assert result.exit_code == 2
        assert "working-folder: the current folder was removed" in result.output
