"""Several releases in one report: which rule each of them violates, and where."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.verify.places import RELEASE, ROOT, run

RULES = ("--select", "CC-06,CC-27,CC-28,IM-03,MP", "--advice")
ROW = re.compile(r'<tr><th scope="row">([A-Z0-9-]+)</th>(.*)</tr>')
FINDING = re.compile(r'id="finding-(\d+)" data-rule="([^"]*)" data-file="([^"]*)"')
LIST = re.compile(r'<div id="(cell-\d+-\d+)">(.*?)</ul>', re.DOTALL)


@pytest.fixture(autouse=True)
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for version in ("v0.1.0", "v0.2.0"):
        shutil.copytree(ROOT / RELEASE, tmp_path / "out" / version)
    path = tmp_path / "out" / "v0.1.0" / "infrastructure-components.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("name: controller\n", "name: manager\n"), encoding="utf-8")


def test_each_cell_links_to_the_findings_of_its_release_and_rule() -> None:
    page = run("out/v0.1.0", "out/v0.2.0", "--advice", "--format", "html").output
    findings = {number: (rule, file) for number, rule, file in FINDING.findall(page)}
    lists = dict(LIST.findall(page))
    seen = set()
    matrix = page[page.index("Releases and rules") : page.index("Releases of core and rules")]
    for rule, cells in ROW.findall(matrix):
        for version, cell in zip(("v0.1.0", "v0.2.0"), cells.split("</td>"), strict=False):
            for target, count in re.findall(r'href="#([a-z0-9-]+)">(\d+)</a>', cell):
                numbers = re.findall(r"#finding-(\d+)", lists.get(target, f"#{target}"))
                assert len(numbers) == int(count)
                for number in numbers:
                    found, file = findings[number]
                    assert (found, file.split("/")[:2]) == (rule, ["out", version])
                seen.update(numbers)
    assert seen == set(findings)
    assert lists


def test_each_release_has_its_own_verdict() -> None:
    page = run("out/v0.1.0", "out/v0.2.0", *RULES, "--format", "markdown").output
    assert "- out/v0.1.0: 2 places break with core v1.11" in page
    assert "- out/v0.2.0: 3 places break with core v1.10" in page
    assert "| CC-28 |  | 1 |" in page


def test_absolute_folders_become_relative(tmp_path: Path) -> None:
    paths = [str(tmp_path / "out" / version) for version in ("v0.1.0", "v0.2.0")]
    for format in ("html", "markdown"):
        page = run(*paths, *RULES, "--format", format).output
        assert page == run("out/v0.1.0", "out/v0.2.0", *RULES, "--format", format).output
        assert str(tmp_path) not in page


@pytest.mark.parametrize(
    "arguments",
    [("out/v0.1.0",), ("--upgrade", "out/v0.1.0", "out/v0.2.0")],
    ids=["one", "upgrade"],
)
def test_one_release_has_no_matrix_of_releases(arguments: tuple[str, ...]) -> None:
    assert "Releases and rules" not in run(*arguments, "--format", "html").output
