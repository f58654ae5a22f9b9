"""The workflows of a generated repository: pinned actions, and few permissions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.cases import cases
from tests.golden.expected import expected_folder

WORKFLOWS = {
    f"{case.name}/{path.name}": path
    for case in cases()
    for path in sorted(case.expected.glob(".github/workflows/*.yaml"))
}
PINNED = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]
    return found


@pytest.mark.parametrize("path", WORKFLOWS.values(), ids=WORKFLOWS)
def test_actions_are_pinned_and_each_job_has_its_own_permissions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)", text)

    assert used
    assert [each for each in used if not PINNED.fullmatch(each)] == []
    assert yaml.safe_load(text)["permissions"] == {}
    assert all(job["permissions"] for job in jobs(path).values())


@pytest.mark.parametrize("path", WORKFLOWS.values(), ids=WORKFLOWS)
def test_capsmith_is_not_installed_by_its_bare_name(path: Path) -> None:
    """Anyone can publish a package under a name that is not registered (decision 0007)."""
    commands = [step.get("run", "") for job in jobs(path).values() for step in job["steps"]]
    assert [each for each in commands if re.search(r"pip install ['\"]?capsmith", each)] == []


def test_what_builds_cannot_publish() -> None:
    release = jobs(expected_folder("complete") / ".github" / "workflows" / "release.yaml")
    with_code = {
        name
        for name, job in release.items()
        if any("make " in step.get("run", "") for step in job["steps"])
    }

    assert with_code == {"build"}
    assert release["build"]["permissions"] == {"contents": "read"}
    assert release["publish"]["needs"] == "build"
    (image,) = (step for step in release["publish"]["steps"] if step.get("id") == "image")
    assert image["with"]["sbom"] is True
    assert image["with"]["provenance"] == "mode=max"
