"""The group of commands that imports a command only when it runs."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click import formatting

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_FALLBACK_WIDTH = 80


class CommandReference(NamedTuple):
    """Where a command is defined, and what the list of commands says about it."""

    module: str
    attribute: str
    summary: str
    """The first sentence of the command's help."""

    def load(self) -> click.Command:
        """Import the command."""
        command: click.Command = getattr(import_module(self.module), self.attribute)
        return command

    def describe(self, name: str) -> click.Command:
        """Return a command that has only the name and summary, without importing the real one."""
        return click.Command(name, help=self.summary)


class LazyCommands(MutableMapping[str, click.Command]):
    """Commands by name; a command is imported when it is first looked up."""

    def __init__(self, references: Mapping[str, CommandReference]) -> None:
        self._commands: dict[str, click.Command | CommandReference] = {**references}

    def __getitem__(self, name: str) -> click.Command:
        found = self._commands[name]
        if isinstance(found, CommandReference):
            found = self._commands[name] = found.load()
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """Return a command, or the default for an unknown name.

        The inherited method would also return the default for a KeyError raised in the command's
        module.
        """
        if name not in self:
            return default
        return self[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._commands[name] = command

    def __delitem__(self, name: str) -> None:
        del self._commands[name]

    def __contains__(self, name: object) -> bool:
        # The method that is inherited would import the command.
        return name in self._commands

    def __iter__(self) -> Iterator[str]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)


class CapsmithGroup(click.Group):
    """A click group that starts fast, and reports a failed write in one line, even for ``--help``.

    Building every option of every command would take longer than everything else that ``--help``
    does.
    """

    def __init__(
        self, *args: Any, references: Mapping[str, CommandReference], **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.commands = LazyCommands(references)
        self.references = references

    def main(self, *args: Any, **options: Any) -> Any:
        """Run the command line.  Exits with code 2 if the output cannot be written."""
        try:
            return super().main(*args, **options)
        except OSError as error:
            sys.exit(report_unwritable(error))

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments; commands inherit the width of the terminal from the context."""
        limit = self.context_settings["max_content_width"]
        extra.setdefault("terminal_width", formatting.FORCED_WIDTH or find_text_width(limit))
        return super().make_context(info_name, args, parent, **extra)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        names = {name: each.describe(name) for name, each in self.references.items()}
        click.Group(commands=names).format_commands(ctx, formatter)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that start with a text, without importing commands."""
        from click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=self.references[name].describe(name).get_short_help_str())
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def find_text_width(limit: int) -> int:
    """Return the columns that help may use in this terminal, as click computes them.

    The columns of the terminal are those that ``shutil.get_terminal_size`` returns; importing
    shutil would take as long as formatting the help.
    """
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns <= 0:
        try:
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
        except (AttributeError, ValueError, OSError):
            columns = _FALLBACK_WIDTH
    return max(min(columns or _FALLBACK_WIDTH, limit) - 2, 50)


def report_unwritable(error: OSError) -> int:
    """Print that the output cannot be written; return the exit code.

    A closed pipe raises the error again: click then exits quietly.
    """
    if error.errno == errno.EPIPE:
        raise error
    click.echo(f"the report cannot be written: {error.strerror or error}", err=True)
    return 2
