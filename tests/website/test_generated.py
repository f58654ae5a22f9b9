"""The pages of the reference that are made from code and data."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from capsmith.cli import main
from capsmith.provider_yaml.jsonschema import build_provider_schema
from tests.invalid.cases import FOLDER
from website.generated import generated_pages
from website.source_findings import Reported, reported


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return generated_pages()


@pytest.fixture(scope="module")
def rows(pages: dict[str, str]) -> list[tuple[str, str, str]]:
    """Return the id, the severities and the meaning of each finding on its page."""
    row = re.compile(r'^\| <a id="([\w-]+)"></a>`\1` \| ([\w, ]+) \| (.*) \|$', re.MULTILINE)
    return row.findall(pages["reference/findings.md"])


def test_findings_that_are_reported_are_on_the_page(
    rows: list[tuple[str, str, str]],
) -> None:
    texts = (file.read_text(encoding="utf-8") for file in FOLDER.glob("*/findings.txt"))
    lines = re.compile(r"^\S+ (?:error|warning|info) ([a-z][\w-]+):", re.MULTILINE)
    found = {id for text in texts for id in lines.findall(text)}
    assert len(found) > 100
    assert found <= {id for id, _, _ in rows}


def test_each_finding_has_a_meaning(rows: list[tuple[str, str, str]]) -> None:
    assert len(rows) > 200
    assert [id for id, _, meaning in rows if not re.search(r"\w{2}", meaning)] == []


def test_every_option_is_on_the_page_of_commands(pages: dict[str, str]) -> None:
    page = pages["reference/commands.md"]
    groups: dict[str, click.Group] = {"capsmith": main}
    while groups:
        path, group = groups.popitem()
        for name, command in group.commands.items():
            assert f"\n## {path} {name}\n" in page
            if isinstance(command, click.Group):
                groups[f"{path} {name}"] = command
            for parameter in command.params:
                if isinstance(parameter, click.Option) and not parameter.hidden:
                    assert parameter.opts[-1] in page


def test_commands_of_groups_have_sections_of_their_own(pages: dict[str, str]) -> None:
    page = pages["reference/commands.md"]
    group = main.commands["lab"]
    assert isinstance(group, click.Group)
    assert len(group.commands) >= 7
    for name in group.commands:
        assert f"\n## capsmith lab {name}\n" in page


def test_every_key_is_on_the_page_of_provider_yaml(pages: dict[str, str]) -> None:
    page = pages["reference/provider-yaml.md"]
    schema = build_provider_schema()
    for part in (schema, *schema["$defs"].values()):
        for key in part.get("properties", {}):
            assert f"`{key}`" in page


def test_each_row_of_a_table_has_its_cells(pages: dict[str, str]) -> None:
    for text in pages.values():
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            rows = [len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()]
            assert rows == rows[:1] * len(rows), table


def test_messages_are_read_from_the_syntax(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(
        'HINT = "Mend it."\n'
        "def check(place, name):\n"
        '    message = f"{name} is wrong"\n'
        '    place.error("a-b", message, HINT)\n'
        '    message = "another"\n'
        '    place.warning("c-d", message, f"Use {name}.")\n'
        '    return Finding("e-f", "x" if name else "y", None, Severity.INFO, hint=HINT)\n'
        "class Broken(Error):\n"
        '    """It is broken.\n\n    More.\n    """\n'
        "    def __init__(self, message):\n"
        '        super().__init__("g-h", message)\n',
        encoding="utf-8",
    )
    assert reported(tmp_path) == [
        Reported("a-b", "error", "… is wrong", "Mend it."),
        Reported("c-d", "warning", "another", "Use …."),
        Reported("e-f", "info", "x", "Mend it."),
        Reported("e-f", "info", "y", "Mend it."),
        Reported("g-h", "error", "It is broken", ""),
    ]
