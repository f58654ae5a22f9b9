"""The list of commands in `capsmith --help`, which is written without importing them."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from capsmith.cli import main
from capsmith.cli.group import CapsmithGroup, CommandReference, find_text_width
from tests.terminal import on_terminal


@pytest.mark.parametrize("name", sorted(main.references))
def test_the_list_says_what_the_command_says_first(name: str) -> None:
    """Show the same short help as click shows for the imported command."""
    reference = main.references[name]
    command = reference.load()

    assert (command.name, command.hidden, command.deprecated) == (name, False, False)
    listed = click.Command(name, help=reference.summary)
    for limit in (30, 60, 1000):
        assert listed.get_short_help_str(limit) == command.get_short_help_str(limit)


@pytest.mark.parametrize("columns", ["", "wide", "-1", "0", "40", "60", "72", "100", "250"])
def test_width_is_the_width_that_click_finds(monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)

    assert find_text_width(100) == click.HelpFormatter(max_width=100).width


@pytest.mark.parametrize("command", [[], ["verify"], ["lab", "up"]])
def test_help_fits_the_terminal(command: list[str]) -> None:
    """Use the columns of the terminal, and not one more; commands below the first level too."""
    run = [sys.executable, "-m", "capsmith", *command, "--help"]
    with on_terminal(run) as terminal:
        terminal.read_rest()
        assert terminal.process.wait() == 0
    longest = max(len(line.rstrip()) for line in terminal.shown.splitlines())
    assert 50 < longest <= 60


def test_an_unknown_command_is_named() -> None:
    with pytest.raises(click.UsageError, match="No such command 'verfy'"):
        main.main(["verfy"], standalone_mode=False)


def test_an_error_in_the_module_of_a_command_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A KeyError does not read as an unknown command."""
    (tmp_path / "module_with_key_error.py").write_text("{}['missing']\n")
    monkeypatch.syspath_prepend(tmp_path)
    references = {"run": CommandReference("module_with_key_error", "run", "Run.")}
    settings = {"max_content_width": 100}
    group = CapsmithGroup("capsmith", references=references, context_settings=settings)

    with pytest.raises(KeyError, match="missing"):
        group.main(["run"], standalone_mode=False)


@pytest.mark.parametrize("typed", ["", "ver", "completion", "nothing", "-", "--v"])
def test_completion_offers_what_click_offers(typed: str) -> None:
    """Offer the same names with the same help as click, which imports each command for it."""
    context = click.Context(main, info_name="capsmith")
    offered, expected = (
        [(each.value, each.type, each.help) for each in complete(context, typed)]
        for complete in (main.shell_complete, super(CapsmithGroup, main).shell_complete)
    )
    assert offered == expected
