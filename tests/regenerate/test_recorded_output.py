"""A repository that was generated before: a first run on the same text only writes it again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from capsmith.commands.generate import generate
from capsmith.commands.recorded_output import Output, record_output, reuse_output
from capsmith.errors import CapsmithError
from capsmith.findings import Finding, Location, Severity
from capsmith.report import Report
from capsmith.workspace.repository import Change, Repository
from tests.regenerate.conftest import ACME, run, tree

IMPORTS = "import sys; from capsmith.cli import main; main(standalone_mode=False); {}"


@pytest.fixture(autouse=True)
def _a_cache_without_records(cache_without_memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPSMITH_CACHE", str(cache_without_memory))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """Return a provider.yaml from which no other test generates."""
    path = tmp_path / "spec/provider.yaml"
    path.parent.mkdir()
    path.write_text(f"# {tmp_path.name}\n{ACME.read_text()}")
    return path


@pytest.fixture
def generated(spec: Path, tmp_path: Path) -> Path:
    assert run("generate", str(spec), "-o", str(tmp_path / "generated")).code == 0
    return tmp_path / "generated"


def test_the_same_files_and_the_same_report(spec: Path, generated: Path, tmp_path: Path) -> None:
    reused = run("generate", str(spec), "-o", str(tmp_path / "a"), "--format", "json")
    shutil.rmtree(os.environ["CAPSMITH_CACHE"])
    full = run("generate", str(spec), "-o", str(tmp_path / "b"), "--format", "json")

    assert full.report.keys() == reused.report.keys()
    assert full.report["files"] == reused.report["files"]
    assert full.report["runtime"] == reused.report["runtime"]
    assert tree(tmp_path / "a") == tree(tmp_path / "b") == tree(generated)
    assert run("update", "--check", str(tmp_path / "a")).code == 0


def test_nothing_is_rendered_again(spec: Path, generated: Path, tmp_path: Path) -> None:
    for folder, is_rendered in (("a", False), ("b", True)):
        ended = f"assert ('jinja2' in sys.modules) is {is_rendered}, sorted(sys.modules)"
        done = subprocess.run(
            [
                *(sys.executable, "-c", IMPORTS.format(ended)),
                *("generate", str(spec), "-o", str(tmp_path / folder)),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        spec.write_text(spec.read_text() + "# changed\n")


def test_in_the_folder_of_the_file(spec: Path, generated: Path) -> None:
    (spec.parent / ".git").mkdir()

    report = reuse_output(spec, spec.parent)

    assert report is not None
    assert report.is_first
    assert tree(spec.parent) == tree(generated)


@pytest.mark.parametrize("name", ["notes.txt", "Makefile", ".capsmith/stage/new", "src/mine.py"])
def test_a_folder_with_other_files_is_left_to_a_full_run(
    spec: Path, generated: Path, tmp_path: Path, name: str
) -> None:
    other = tmp_path / "other" / name
    other.parent.mkdir(parents=True)
    other.write_text("mine\n")

    assert reuse_output(spec, tmp_path / "other") is None
    assert other.read_text() == "mine\n"
    assert len(tree(tmp_path / "other")) == 1


def test_another_text_is_generated(spec: Path, generated: Path, tmp_path: Path) -> None:
    spec.write_text(spec.read_text().replace("name: acme", "name: emca"))

    assert reuse_output(spec, tmp_path / "other") is None
    assert not (tmp_path / "other").exists()


def test_another_capsmith_generates(
    spec: Path, generated: Path, tmp_path: Path, change_blueprint: Callable[[str, str, str], None]
) -> None:
    assert reuse_output(spec, tmp_path / "other") is None


def test_a_damaged_record_is_not_used(spec: Path, generated: Path, tmp_path: Path) -> None:
    for entry in Path(os.environ["CAPSMITH_CACHE"]).iterdir():
        entry.write_bytes(entry.read_bytes()[:-1])

    assert reuse_output(spec, tmp_path / "other") is None


def test_an_output_with_findings_is_not_recorded(spec: Path, tmp_path: Path) -> None:
    finding = Finding("GEN-08", "a warning", Location("provider.yaml"), Severity.WARNING)
    record_output(spec.read_text(), Output({}, Report((finding,))))

    assert reuse_output(spec, tmp_path / "b") is None


def test_only_the_command_records(spec: Path, tmp_path: Path) -> None:
    """A program that calls the function may have replaced parts of capsmith."""
    assert generate(spec, tmp_path / "a").exit_code == 0

    assert reuse_output(spec, tmp_path / "b") is None


def test_what_an_overlay_changes_is_not_recorded(spec: Path, tmp_path: Path) -> None:
    overlay = tmp_path / "overlay"
    (overlay / "project").mkdir(parents=True)
    (overlay / "project/README.md.jinja").write_text("# Mine\n")
    assert (
        run("generate", str(spec), "-o", str(tmp_path / "a"), "--blueprints", str(overlay)).code
        == 0
    )

    assert reuse_output(spec, tmp_path / "b") is None


def test_the_option_for_an_overlay_needs_a_full_run(
    spec: Path, generated: Path, tmp_path: Path
) -> None:
    overlay = tmp_path / "missing"

    assert (
        run("generate", str(spec), "-o", str(tmp_path / "b"), "--blueprints", str(overlay)).code
        == 2
    )


def test_files_beside_which_it_was_generated_are_not_recorded(spec: Path, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/Makefile").write_text("mine:\n")
    run("generate", str(spec), "-o", str(tmp_path / "a"), "--beside-others")

    assert reuse_output(spec, tmp_path / "b") is None


def test_a_file_that_appears_meanwhile_is_not_replaced(
    spec: Path, generated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply = Repository.apply

    def appear(repository: Repository, change: Change) -> None:
        (spec.parent / "Makefile").write_text("mine:\n")
        apply(repository, change)

    monkeypatch.setattr(Repository, "apply", appear)

    with pytest.raises(CapsmithError):
        reuse_output(spec, spec.parent)
    assert (spec.parent / "Makefile").read_text() == "mine:\n"


def test_an_unreadable_file_is_left_to_a_full_run(tmp_path: Path) -> None:
    assert reuse_output(tmp_path / "missing.yaml", tmp_path / "b") is None
