"""The workflows of this repository: pinned actions, and a release whose code cannot publish."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.packaging.conftest import ROOT

FILES = sorted([*(ROOT / ".github" / "workflows").glob("*.y*ml"), ROOT / "action.yml"])
BLUEPRINTS = sorted((ROOT / "blueprints/project/.github").rglob("*.jinja"))
USES = re.compile(r"^ *(?:- )?uses: (.+)$", re.MULTILINE)
PINNED = re.compile(r"(?P<action>[\w./-]+)@(?P<commit>[0-9a-f]{40}) # v\d+\.\d+\.\d+")
LOCAL = re.compile(r"\./\.github/workflows/[\w-]+\.yaml")


def used(path: Path) -> list[str]:
    """Return the actions of other repositories, with their comment."""
    found = USES.findall(path.read_text(encoding="utf-8"))
    return [each for each in found if not LOCAL.fullmatch(each)]


def pins(paths: list[Path]) -> set[tuple[str, str]]:
    matches = (PINNED.fullmatch(each) for path in paths for each in used(path))
    return {(match["action"], match["commit"]) for match in matches if match is not None}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    assert [each for each in used(path) if not PINNED.fullmatch(each)] == []


def test_each_action_has_one_commit_here_and_in_generated_repositories() -> None:
    found = sorted(pins([*FILES, *BLUEPRINTS]))
    actions = [action for action, _ in found]

    assert {"actions/checkout", "pypa/gh-action-pypi-publish"} <= set(actions)
    assert len(actions) == len(set(actions)), found


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    text = (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    found: dict[str, Any] = workflow["jobs"]
    return found


def test_code_runs_only_where_nothing_can_be_written(jobs: dict[str, Any]) -> None:
    assert all(job["permissions"] for job in jobs.values())
    for name, job in jobs.items():
        runs_code = "uses" in job or any("./dev" in step.get("run", "") for step in job["steps"])
        assert runs_code == (name in {"test", "build"})
        if runs_code:
            assert job["permissions"] == {"contents": "read"}


def test_nothing_is_published_before_all_checks_passed(jobs: dict[str, Any]) -> None:
    assert jobs["attest"]["needs"] == ["test", "build"]
    assert jobs["publish"]["needs"] == "attest"
    assert jobs["release"]["needs"] == jobs["site"]["needs"] == "publish"


def test_publishing_needs_no_secret(jobs: dict[str, Any]) -> None:
    text = (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8")
    assert "secrets." not in text
    publish = jobs["publish"]
    assert (publish["environment"], publish["permissions"]) == ("pypi", {"id-token": "write"})
    assert publish["strategy"]["matrix"]["distribution"] == ["capsmith-runtime", "capsmith"]


def test_ci_runs_the_dry_run() -> None:
    assert " ./dev release --dry-run\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_dependabot_reads_every_folder_with_versions() -> None:
    text = (ROOT / ".github/dependabot.yml").read_text(encoding="utf-8")
    updates = {each["package-ecosystem"]: each for each in yaml.safe_load(text)["updates"]}

    assert updates["github-actions"]["directory"] == "/"
    assert set(updates["pip"]["directories"]) == {"/", "/requirements", "/runtime"}
