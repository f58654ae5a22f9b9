"""The release that the reports are about, and the files that hold what is expected of them."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from capsmith.cli import main

ROOT = Path(__file__).parent
RELEASE = "release/v0.2.0"
FORMATS = {
    "text": "report.txt",
    "json": "report.json",
    "sarif": "report.sarif",
    "junit": "junit.xml",
    "html": "report.html",
    "markdown": "report.md",
}

PAGE_RULES = "CC-06,CC-27,CC-28,IM-01,IM-03,IM-12"
"""Rules of the expected pages, which also hold the words of rules without violation."""


def run(*arguments: str) -> Result:
    """Return the result of ``capsmith verify``."""
    return CliRunner().invoke(main, ["verify", *arguments])


def report(format: str) -> str:
    """Return the report on the release, in the current folder :data:`ROOT`."""
    selected = ("--select", PAGE_RULES) if format in ("html", "markdown") else ()
    result = run(RELEASE, "--format", format, *selected)
    assert result.exit_code == 1, result.output
    return result.output
