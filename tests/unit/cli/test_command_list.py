"""The list of commands in `capsmith --help`, which is written without importing them."""

from __future__ import annotations

import sys

import click
import pytest

from capsmith.cli import main
from capsmith.cli.group import find_text_width
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
    """Use the columns of the terminal, and no more; commands below the first level too."""
    run = [sys.executable, "-m", "capsmith", *command, "--help"]
    with on_terminal(run) as terminal:
        terminal.read_rest()
        assert terminal.process.wait() == 0
    longest = max(len(line.rstrip()) for line in terminal.shown.splitlines())
    assert 50 < longest <= 60


def test_an_unknown_command_is_named() -> None:
    with pytest.raises(click.UsageError, match="No such command 'verfy'"):
        main.main(["verfy"], standalone_mode=False)
