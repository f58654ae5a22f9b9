"""Write the JSON Schema of rules and the page on checks: ``python -m tests.rules.vocabulary``."""

from __future__ import annotations

from pathlib import Path

from capsmith.judge.checks.vocabulary import render_checks_page, render_rules_schema
from tests.rules.cases import rules

_ROOT = Path(__file__).parents[2]


def expected() -> dict[Path, str]:
    """Return the texts by file."""
    return {
        _ROOT / "schemas" / "rules.schema.json": render_rules_schema(),
        _ROOT / "docs" / "checks.md": render_checks_page(rules().values()),
    }


def main() -> None:
    for file, text in expected().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
