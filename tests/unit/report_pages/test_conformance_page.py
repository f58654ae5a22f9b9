"""Reports of conformance as pages, and the command that repeats a run."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from capsmith.cli.options import FOLDER, format_command
from capsmith.judge.running.model import CheckOutcome, CheckResult, ConformanceReport
from capsmith.judge.running.page import make_page
from capsmith.report_pages import html, markdown

REPORT = ConformanceReport(
    "acme",
    "v1beta2",
    (
        CheckResult(
            "cluster-ready", "It is ready.", ("IC-10",), CheckOutcome.PASSED, seconds=83.25
        ),
        CheckResult(
            "machine-deleted",
            "Deletion ends.",
            ("IM-16",),
            CheckOutcome.FAILED,
            "it still exists\nlog: <b>hung</b>",
            "AcmeMachine ns/a",
            "metadata.finalizers",
            "Remove the finalizer.",
            ("https://example.com/rule",),
        ),
        CheckResult("move", "It moves.", ("MV-02",), CheckOutcome.SKIPPED, "no servers"),
    ),
)


def test_page_shows_failures_with_details_and_no_durations() -> None:
    page = make_page(REPORT, "capsmith conformance out")
    failed, skipped = page.entries
    assert (failed.id, failed.message) == ("machine-deleted", "it still exists")
    assert failed.details == ("log: <b>hung</b>",)
    assert (skipped.id, skipped.message) == ("move", "no servers")
    assert [fact.name for fact in page.held] == ["cluster-ready"]
    assert page.has_failed
    for text in (html.render(page), markdown.render(page)):
        assert "machine-deleted" in text
        assert "cluster-ready" in text
        assert "83.25" not in text
    assert "&lt;b&gt;hung&lt;/b&gt;" in html.render(page)


def test_details_are_not_cut_as_lines_of_files_are() -> None:
    details = f"Ready=False Refused: {'why ' * 100}\nfinalizers: a/b"
    result = CheckResult("wait", "It ends.", (), CheckOutcome.FAILED, f"no\n{details}")
    page = make_page(ConformanceReport("acme", "v1beta2", (result,)), "capsmith conformance out")
    assert details in html.render(page)
    for line in details.splitlines():
        assert f"\n  {line.rstrip()}\n" in markdown.render(page)


def test_command_leaves_out_the_format_credentials_and_absolute_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command("conformance")
    @click.argument("release", type=FOLDER)
    @click.option("--env", multiple=True)
    @click.option("--strict", is_flag=True)
    @click.option("--format", "format_")
    @click.option("--core", default="v1.13")
    def command(**_: object) -> None:
        click.echo(format_command())

    monkeypatch.chdir(tmp_path)
    words = [f"{tmp_path}/out", "--env", "TOKEN=secret", "--strict", "--format", "html"]
    output = CliRunner().invoke(command, words).output
    assert output == "capsmith conformance --env TOKEN=... --strict out\n"
