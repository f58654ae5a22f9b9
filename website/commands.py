"""The page of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from capsmith.cli import main


def commands_page() -> str:
    """Return the page as Markdown."""
    context = click.Context(main, info_name="capsmith")
    parts = ["# Commands\n\n", _paragraphs(main), "\n\n"]
    parts.append(
        "Reports come as text or with `--format json`; progress and colours only on a terminal.\n"
        "`NO_COLOR` in the environment leaves out colours, and `CAPSMITH_PROGRESS=lines` prints\n"
        "progress as lines that stay on the screen, for screen readers.\n"
    )
    parts += [_section(each) for each in _below(context)]
    return "".join(parts)


def _below(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of each command of a group, and of those of its groups."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None and not command.hidden:
            found = click.Context(command, info_name=name, parent=context)
            yield found
            yield from _below(found)


def _section(context: click.Context) -> str:
    command = context.command
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"\n## {context.command_path}\n", f"\n```text\n{' '.join(usage.split())}\n```\n"]
    lines.append(f"\n{_paragraphs(command)}\n")
    rows = [_row(each, context) for each in command.get_params(context)]
    shown = [row for row in rows if row]
    if shown:
        lines.append("\n| Option | Meaning |\n|---|---|\n")
        lines += shown
    return "".join(lines)


def _row(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    names, meaning = (" ".join(part.split()).replace("|", "\\|") for part in record)
    return f"| `{names}` | {_escaped(meaning)} |\n"


def _paragraphs(command: click.Command) -> str:
    text = (command.help or "").replace("\b\n", "")
    return "\n\n".join(_escaped(" ".join(part.split())) for part in text.split("\n\n"))


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*")
