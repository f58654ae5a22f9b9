"""Selection, suppression with a reason, and baselines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.verify.places import RELEASE, ROOT, run

COMPONENTS = ROOT / RELEASE / "infrastructure-components.yaml"


def reported(*arguments: str) -> set[str]:
    result = run(str(COMPONENTS), "--format", "json", *arguments)
    assert result.exit_code in (0, 1), result.output
    return {violation["id"] for violation in json.loads(result.output)["violations"]}


def config(folder: Path, text: str) -> str:
    path = folder / "verify.yaml"
    path.write_text(text)
    return str(path)


def test_all() -> None:
    assert {"CC-27", "CC-28", "IM-03"} <= reported()


def test_files_beside_one_that_is_named_are_not_missed(tmp_path: Path) -> None:
    assert "CC-01" not in reported()
    (tmp_path / COMPONENTS.name).write_text(COMPONENTS.read_text())
    assert run(str(tmp_path), "--select", "CC-01").exit_code == 1


def test_select_and_ignore() -> None:
    assert reported("--select", "CC-27,IM") == {"CC-27", "IM-03", "IM-12"}
    assert reported("--select", "CC", "--ignore", "CC-28") == {"CC-27", "CC-81"}


def test_a_configuration_accepts_with_a_reason(tmp_path: Path) -> None:
    entry = {"rule": "CC-27", "reason": "mirrored", "object": "coral-*"}
    path = config(tmp_path, yaml.safe_dump({"ignore": [entry], "roles": {"CoralMachine": "none"}}))
    found = reported("--config", path)
    assert "CC-28" in found
    assert not {"CC-27", "IM-03"} & found
    other = config(tmp_path, yaml.safe_dump({"ignore": [{**entry, "file": "other.yaml"}]}))
    assert "CC-27" in reported("--config", other)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ignore: [{rule: CC-27}]\n", 1),
        ("ignore:\n- {rule: CC-27, reason: ' '}\n", 2),
        ("ignore: {}\nother: 1\n", 2),
        ("ignore: 5\n", 1),
        ("roles: {A: B}\n", 1),
        ("roles: [A]\n", 1),
        ("ignore: [*a]\n", 1),
        ("- a\n", 1),
    ],
)
def test_a_configuration_that_is_wrong(tmp_path: Path, text: str, line: int) -> None:
    path = config(tmp_path, text)
    result = run(str(COMPONENTS), "--config", path, "--format", "json")
    assert result.exit_code == 2, result.output
    (finding,) = json.loads(result.output)["findings"]
    assert (finding["file"], finding["line"]) == (path, line)


@pytest.mark.parametrize("before", ["apiVersion: apps/v1", "          image: "])
def test_a_comment_accepts_with_a_reason(tmp_path: Path, before: str) -> None:
    text = COMPONENTS.read_text()
    assert f"\n{before}" in text
    comment = f"\n# capsmith:ignore CC-27, CC-28: mirrored\n{before}"
    path = tmp_path / "infrastructure-components.yaml"
    for with_reason, expected in ((comment, False), (comment.replace(" mirrored", ""), True)):
        path.write_text(text.replace(f"\n{before}", with_reason))
        result = run(str(path), "--format", "json")
        found = {violation["id"] for violation in json.loads(result.output)["violations"]}
        assert ("CC-27" in found, "IM-03" in found) == (expected, True)


def test_baseline(tmp_path: Path) -> None:
    baseline = tmp_path / "baseline.json"
    written = run(str(COMPONENTS), "--write-baseline", str(baseline))
    assert written.exit_code == 0
    again = run(str(COMPONENTS), "--baseline", str(baseline), "--format", "json")
    assert (again.exit_code, json.loads(again.output)["violations"]) == (0, [])
    moved = tmp_path / "infrastructure-components.yaml"
    text = COMPONENTS.read_text()
    moved.write_text(
        "\n\n" + text + "---\n" + text.partition("---\n")[2].replace("coralm", "reefm")
    )
    result = run(str(moved), "--baseline", str(baseline), "--format", "json")
    found = json.loads(result.output)["violations"]
    assert result.exit_code == 1
    assert {violation["object"].partition(" ")[2] for violation in found} >= {
        "reefmachines.infrastructure.cluster.x-k8s.io"
    }


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"version": 2, "violations": {}}', "[" * 100_000]
)
def test_a_baseline_that_is_wrong(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    result = run(str(COMPONENTS), "--baseline", str(path))
    assert result.exit_code == 2
