"""Code in sentences and tables of the pages names what exists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from capsmith.cli import main
from tests.golden.expected import expected_folder
from tests.website import names
from tests.website.blocks import inline_code
from tests.website.inline import unknown
from tests.website.pages import Page, pages

_EXCEPTIONS = yaml.safe_load((Path(__file__).parent / "inline.yaml").read_text(encoding="utf-8"))
_LEFT_OUT = {
    "CHANGELOG.md": "also has names of former releases",
    "docs/style.md": "has names to avoid",
}
_PAGES = [page for page in pages() if page.source not in _LEFT_OUT]
_RULE = re.compile(r"\b[A-Z]{2,4}-\d{2}\b")
_PLACEHOLDERS = {"AB-01"}
_TABLE = re.compile(r"^\| ([^|]*) \|.*\n\|[-|]+\n((?:\|.*\n)+)", re.MULTILINE)


def place(page: Page) -> str:
    return f"{page.repository}:{page.source}"


@pytest.mark.parametrize("page", _PAGES, ids=place)
def test_code_names_what_exists(page: Page) -> None:
    excepted = _EXCEPTIONS.get(page.source, {})
    codes = [code for code in inline_code(page.text) if code not in excepted]
    assert {code: found for code in codes if (found := unknown(code, page))} == {}


@pytest.mark.parametrize("page", _PAGES, ids=place)
def test_rules_exist(page: Page) -> None:
    assert set(_RULE.findall(page.text)) - _PLACEHOLDERS <= names.rule_ids()


def test_exceptions_are_needed() -> None:
    for source, codes in _EXCEPTIONS.items():
        of_source = [page for page in _PAGES if page.source == source]
        for code in codes:
            found = [page for page in of_source if code in inline_code(page.text)]
            assert any(unknown(code, page) for page in found), (source, code)


def tables(heading: str) -> Iterator[tuple[Page, re.Match[str], list[str]]]:
    """Return the tables whose first column has a heading, with the code in the column."""
    for page in _PAGES:
        for title, rows in _TABLE.findall(page.text):
            match = re.fullmatch(heading, title)
            if match:
                cells = [re.split(r"(?<!\\)\|", row)[1] for row in rows.splitlines()]
                yield page, match, [code for cell in cells for code in inline_code(cell)]


def test_tables_of_options() -> None:
    found = list(tables(r"Option(?: of `capsmith ([a-z]+)`)?"))
    assert len(found) >= 2
    for page, match, codes in found:
        # The one other table of options is that of the stages of `capsmith update`.
        options = set(names.options_of(main.commands[match[1] or "update"]))
        assert {code.partition(" ")[0] for code in codes} <= options, page.source


def test_tables_of_keys() -> None:
    found = list(tables(r"Key(?: of `provider.yaml`)?"))
    assert len(found) >= 2
    for page, _, codes in found:
        assert set(codes) <= names.provider_keys(), page.source


def test_table_of_alerts() -> None:
    ((_, _, codes),) = tables("Alert, after `ClusterAPIProvider`")
    manifest = expected_folder("acme") / "config/components/monitoring/alerts.yaml"
    (group,) = yaml.safe_load(manifest.read_text(encoding="utf-8"))["spec"]["groups"]
    assert [f"ClusterAPIProvider{code}" for code in codes] == [
        rule["alert"] for rule in group["rules"]
    ]


def test_table_of_sections() -> None:
    found = [set(codes) for _, _, codes in tables("Section")]
    assert len(found) == 2
    assert found[0] == found[1] <= names.provider_keys()


@pytest.mark.parametrize(
    "code",
    [
        "capsmith {}",
        "capsmith update --{}",
        "update --{}",
        "--{} VALUE",
        "make {}",
        "./dev {}",
        "kubectl {} x",
        "python -m tests.{}",
        "docs/{}.md",
        "src/<package>/{}/",
        "contract-{}",
        "features: {{{}: true}}",
        "{}: 1",
        "camel{}Case",
        "Some{}Reconciler(x)",
        "machine.snake_{}",
        "cluster.x-k8s.io/{}",
    ],
)
def test_what_does_not_exist_is_found(code: str) -> None:
    (page,) = (page for page in _PAGES if page.source == "docs/how-to/fields.md")
    # Not in this file as a word, because words of the tests exist.
    missing = "missing"[::-1]
    assert unknown(code.format(missing), page)
