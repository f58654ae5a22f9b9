"""Hostile input ends in findings or in exit code 2, soon, and never in a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from capsmith.commands.verify import LIMIT
from tests.verify.places import run

NAME = "infrastructure-components.yaml"
BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


def verdict(*arguments: str) -> tuple[int, list[str]]:
    result = run(*arguments, "--format", "json")
    assert result.exit_code in (0, 1, 2), result.output
    assert not result.exception or isinstance(result.exception, SystemExit)
    data = json.loads(result.output)
    return result.exit_code, [each["id"] for each in data.get("violations", data.get("findings"))]


@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        "a: &a [*a]\n",
        "[" * 10_000,
        "a:\n" + "".join(" " * n + "a:\n" for n in range(1, 500)),
        "a: b: c\n",
        "just text\n",
    ],
    ids=["bomb", "loop", "brackets", "deep", "syntax", "scalar"],
)
def test_text_that_is_no_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    code, found = verdict(str(tmp_path))
    assert code == 1
    assert {"manifest-yaml", "manifest-not-a-mapping"} & set(found)


@pytest.mark.parametrize("name", [NAME, "metadata.yaml", "cluster-template.yaml"])
@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "---\n---\n"], ids=["empty", "comment", "marks"]
)
def test_an_asset_without_objects(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    code, found = verdict(str(tmp_path))
    assert (code, found) == (1, ["manifest-empty"])


def test_ten_thousand_documents(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("---\nkind: A\nmetadata: {name: a}\n" * 10_000)
    assert verdict(str(tmp_path))[0] == 1  # there is no metadata.yaml


def test_many_separators_with_content(tmp_path: Path) -> None:
    """The time for each grew with the number of lines before it."""
    (tmp_path / NAME).write_text("a: 1\n" + "---x\n" * 20_000)
    code, found = verdict(str(tmp_path))
    assert code == 1
    assert found.count("manifest-yaml") > 20_000


@pytest.mark.parametrize("end", ["\r", "\x85", "\u2028"])
def test_lines_that_end_as_in_yaml(tmp_path: Path, end: str) -> None:
    """A syntax error in such a file was reported as a wrong option."""
    text = end.join(["kind: A", "a: ${A}", *["b: 1"] * 5, "e: [1", "f: 1", ""])
    (tmp_path / NAME).write_text(text, encoding="utf-8", newline="")
    code, found = verdict(str(tmp_path))
    assert code == 1
    assert "manifest-yaml" in found


@pytest.mark.parametrize("text", ["${A" * 20_000, "${A:=" * 20_000, "a: ${A:=" + "x" * 100_000])
def test_variables_without_an_end(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text)
    assert verdict(str(tmp_path))[0] == 1


def test_symbolic_links(tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.mkdir()
    (release / NAME).symlink_to("/etc/passwd")
    (release / "loop").symlink_to(release)
    assert verdict(str(release)) == (2, ["verify-nothing"])
    assert verdict(str(release / NAME)) == (2, ["input-symlink"])
    assert verdict(str(release / "loop")) == (2, ["input-symlink"])


@pytest.mark.parametrize(
    ("data", "id"), [(b"\xff\xfe\x00", "input-not-text"), (b"a\0b", "input-not-text")]
)
def test_files_that_are_no_text(tmp_path: Path, data: bytes, id: str) -> None:
    (tmp_path / NAME).write_bytes(data)
    assert verdict(str(tmp_path)) == (2, [id])


def test_nothing_to_judge(tmp_path: Path) -> None:
    assert verdict(str(tmp_path)) == (2, ["verify-nothing"])
    assert verdict(str(tmp_path / "missing")) == (2, ["input-missing"])


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capsmith.commands.verify.LIMIT", LIMIT._replace(files=3))
    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("kind: A\n")
    assert verdict(str(tmp_path)) == (2, ["verify-too-much"])


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("")
    (tmp_path / "metadata.yaml").write_text("")
    assert verdict(str(tmp_path))[0] in (0, 1)


@pytest.mark.parametrize("format", ["text", "json", "sarif", "junit", "html", "markdown"])
def test_values_of_manifests_are_shortened(tmp_path: Path, format: str) -> None:
    huge = "x" * 200_000
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": huge, "labels": {"cluster.x-k8s.io/provider": huge}},
        "spec": {
            "group": "infrastructure.cluster.x-k8s.io",
            "names": {"kind": "A" + huge, "plural": huge},
            "scope": huge,
            "versions": [
                {"name": huge, "schema": {"openAPIV3Schema": {"properties": {huge[:900]: {}}}}}
            ],
        },
    }
    (tmp_path / NAME).write_text(json.dumps(crd))
    (tmp_path / "metadata.yaml").write_text(f"kind: {huge}\napiVersion: {huge}\n")
    (tmp_path / "cluster-template.yaml").write_text(f"kind: {huge}\napiVersion: '{huge}'\n")
    result = run(str(tmp_path), "--format", format, "--advice")
    assert result.exit_code == 1
    ids = set(verdict(str(tmp_path))[1])
    assert len(ids) > 5
    assert " more characters) ... " in result.output
    assert max(map(len, result.output.splitlines())) < 4_000
