"""The command line as people and scripts use it: output, exit codes, and what is on disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from capsmith.cli import main

ROOT = Path(__file__).parents[2]
ACME = ROOT / "examples/acme/provider.yaml"


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Outside of the folder: commands that write nothing may still fill the cache.
    monkeypatch.setenv("CAPSMITH_CACHE", str(tmp_path / "cache"))


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    return result


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_generate_twice_changes_nothing() -> None:
    assert run("generate", ACME, "-o", "repo").exit_code == 0
    before = snapshot(Path("repo"))
    again = run("generate", ACME, "-o", "repo", "--format", "json")
    assert again.exit_code == 0
    assert snapshot(Path("repo")) == before
    assert {file["outcome"] for file in json.loads(again.output)["files"]} <= {"unchanged", "kept"}


def test_the_generated_repository_generates_itself() -> None:
    run("generate", ACME, "-o", "repo")
    before = snapshot(Path("repo"))
    os.chdir("repo")
    assert run("generate").exit_code == 0
    os.chdir("..")
    assert snapshot(Path("repo")) == before


def test_a_change_of_the_spec_reaches_generated_files_and_no_author_file() -> None:
    spec = Path("provider.yaml")
    spec.write_text(ACME.read_text())
    run("generate", spec, "-o", "repo")
    (reconciler,) = Path("repo/src").glob("*/controllers/acme_machine.py")
    reconciler.write_text("# mine\n")
    spec.write_text(ACME.read_text().replace("size: string!", "size: string!\n      rack: string"))
    assert spec.read_text() != ACME.read_text()
    assert run("generate", spec, "-o", "repo").exit_code == 0
    (model,) = Path("repo/src").glob("*/_generated/api/acme_machine.py")
    assert "rack" in model.read_text()
    assert reconciler.read_text() == "# mine\n"
    assert Path("repo/provider.yaml").read_text() == spec.read_text()


def test_an_edited_generated_file_is_refused_by_name_and_nothing_changes() -> None:
    run("generate", ACME, "-o", "repo")
    edited = Path("repo/config/crd/kustomization.yaml")
    edited.write_text(edited.read_text() + "# edited\n")
    before = snapshot(Path("repo"))
    result = run("generate", ACME, "-o", "repo")
    assert result.exit_code == 1
    assert "config/crd/kustomization.yaml: error output-edited" in result.output
    assert snapshot(Path("repo")) == before


def test_a_folder_with_other_files_is_refused_and_they_are_named() -> None:
    Path("repo").mkdir()
    Path("repo/precious.txt").write_text("mine")
    result = run("generate", ACME, "-o", "repo")
    assert result.exit_code == 1
    assert "output-not-empty" in result.output
    assert "precious.txt" in result.output
    assert list(snapshot(Path("repo"))) == ["precious.txt"]


def test_another_provider_yaml_in_the_folder_is_not_replaced() -> None:
    run("generate", ACME, "-o", "repo")
    own = Path("repo/provider.yaml")
    own.write_text(own.read_text() + "# mine\n")
    before = snapshot(Path("repo"))
    result = run("generate", ACME, "-o", "repo")
    assert result.exit_code == 1
    assert "output-other-spec" in result.output
    assert snapshot(Path("repo")) == before


@pytest.mark.parametrize("command", ["validate", "generate"])
def test_findings_exit_1_and_write_nothing(command: str) -> None:
    Path("provider.yaml").write_text(ACME.read_text().replace("implements: InfraMachine", "a: b"))
    before = snapshot(Path())
    result = run(command)
    assert result.exit_code == 1
    assert "provider.yaml:" in result.output
    assert snapshot(Path()) == before


@pytest.mark.parametrize("command", ["validate", "generate"])
def test_unreadable_input_exits_2_on_standard_error(command: str) -> None:
    result = run(command, "nowhere.yaml")
    assert result.exit_code == 2
    assert "nowhere.yaml: error input-missing" in result.stderr
    assert "capsmith new" in result.stderr
    assert result.stdout == ""
    assert snapshot(Path()) == {}


def test_unreadable_input_as_json_is_one_document() -> None:
    result = run("validate", "nowhere.yaml", "--format", "json")
    report = json.loads(result.stdout)
    assert report["exitCode"] == result.exit_code == 2
    assert [finding["id"] for finding in report["findings"]] == ["input-missing"]


def test_usage_exits_2() -> None:
    assert run("generate", "--nonsense").exit_code == 2
    assert run("nonsense").exit_code == 2


def test_validate_explains_what_follows() -> None:
    result = run("validate", ACME, "--explain")
    assert result.exit_code == 0
    assert json.loads(result.output)["package"] == "cluster_api_provider_acme"


def test_schema_is_the_one_for_editors() -> None:
    result = run("schema")
    assert result.exit_code == 0
    assert result.output == (ROOT / "schemas/provider.schema.json").read_text()


def test_explain_and_rules_return_the_same() -> None:
    rows = json.loads(run("rules", "--page", "infra-machine", "--format", "json").output)
    (row,) = (row for row in rows if row["id"] == "IM-03")
    assert json.loads(run("explain", "im-03", "--format", "json").output) == row
    assert row["statement"] in run("explain", "IM-03").output


def test_an_unknown_rule_names_its_neighbours() -> None:
    result = run("explain", "IM3")
    assert result.exit_code == 2
    assert "IM-03" in result.stderr


def test_explain_prints_a_kind_of_a_description() -> None:
    result = run("explain", "AcmeMachine", "--spec", ACME)
    assert result.exit_code == 0
    assert "Machine: spec.infrastructureRef (its owner)" in result.output
    row = json.loads(run("explain", "AcmeMachine", "--spec", ACME, "--format", "json").output)
    assert row["role"] == "InfraMachine"


def test_an_unknown_kind_names_its_neighbours() -> None:
    result = run("explain", "AcmeMachin", "--spec", ACME)
    assert result.exit_code == 2
    assert "AcmeMachine" in result.stderr
    assert "provider.yaml" in run("explain", "AcmeMachine").stderr


def test_explain_reports_the_findings_of_an_invalid_description() -> None:
    Path("provider.yaml").write_text(ACME.read_text().replace("implements: InfraMachine", "a: b"))
    result = run("explain", "AcmeMachine")
    assert result.exit_code == 1
    assert "spec-unknown-key" in result.output


@pytest.mark.parametrize("format_", ["sarif", "junit"])
def test_formats_of_ci_systems_keep_the_exit_code(format_: str) -> None:
    good = run("validate", ACME, "--format", format_)
    assert good.exit_code == 0
    Path("provider.yaml").write_text(ACME.read_text().replace("implements: InfraMachine", "a: b"))
    bad = run("validate", "--format", format_)
    assert bad.exit_code == 1
    assert "spec-unknown-key" in bad.output
    assert run("validate", "nowhere.yaml", "--format", format_).exit_code == 2


@pytest.mark.parametrize("format_", ["text", "json", "sarif", "junit"])
def test_output_for_a_limited_encoding_has_the_same_meaning(format_: str) -> None:
    Path("é\x1b[31m.yaml").write_text(ACME.read_text().replace("name: acme", "name: ü🙂"))
    command = [sys.executable, "-m", "capsmith", "validate", "é\x1b[31m.yaml", "--format", format_]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "\x1b" not in done.stdout
    match format_:
        case "text":
            assert r"`\xfc\U0001f642`" in done.stdout
        case "junit":
            assert "`ü🙂`" in "".join(ElementTree.fromstring(done.stdout).itertext())
        case _:
            assert "`ü🙂`" in str(json.loads(done.stdout))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("argument", ["rules", "--help", "--version"])
def test_a_report_that_cannot_be_written_is_reported(argument: str) -> None:
    command = [sys.executable, "-m", "capsmith", argument]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr
