"""The command line: options -> commands -> console -> exit code.

The modules behind a command are imported inside it, so that ``--help`` and completion stay as quick
as click itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capsmith.cli import versions
from capsmith.cli.completion import completion
from capsmith.cli.conformance import conformance
from capsmith.cli.import_ import import_
from capsmith.cli.imports import import_pydantic
from capsmith.cli.lab import lab
from capsmith.cli.new import generate, new
from capsmith.cli.options import (
    FOLDER,
    Group,
    blueprints_option,
    command,
    format_option,
)
from capsmith.cli.reference import reference
from capsmith.cli.update import update
from capsmith.cli.verify import verify

if TYPE_CHECKING:
    from pathlib import Path


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=versions.show,
    help="Show the versions of capsmith, its runtime library and its contract data.",
)
def main() -> None:
    """Generate Cluster API providers in Python from one provider.yaml.

    Exit codes: 0 success, 1 findings or drift, 2 usage error or unreadable input.
    """


@main.command()
@click.argument("spec", type=FOLDER, default="provider.yaml")
@blueprints_option
@click.option("--explain", is_flag=True, help="Show everything that is derived from the file.")
@format_option("sarif", "junit")
@command
def validate(spec: Path, blueprints: Path | None, explain: bool, format_: str) -> int:
    """Check SPEC (default: provider.yaml) against the contract."""
    import_pydantic()
    from capsmith.commands.validate import validate
    from capsmith.console import Console

    report, resolution = validate(spec, blueprints)
    console = Console(format_)
    if explain and resolution is not None:
        console.data(resolution)
    else:
        console.report(report, done=f"{spec} is valid.")
    return report.exit_code


main.add_command(generate)
main.add_command(new)
main.add_command(update)
main.add_command(import_)
main.add_command(verify)
main.add_command(conformance)
main.add_command(lab)
main.add_command(reference)
main.add_command(completion)


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@format_option()
@command
def doctor(folder: Path, format_: str) -> int:
    """Show contract versions, file ownership and pending updates of DIR (default: .)."""
    import_pydantic()
    from capsmith.commands.doctor import examine, format_facts
    from capsmith.console import Console

    report, facts = examine(folder)
    console = Console(format_)
    if format_ != "json":
        console.text("\n".join(format_facts(facts)))
    console.report(report, done="", facts=facts)
    return report.exit_code


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--allow-dirty", is_flag=True, help="Continue despite uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="List every file that changes.")
@format_option()
@command
def eject(folder: Path, dry_run: bool, allow_dirty: bool, verbose: bool, format_: str) -> int:
    """Remove capsmith from the repository in DIR (default: .); every file becomes yours."""
    import_pydantic()
    from capsmith.commands.eject import eject
    from capsmith.console import Console

    report = eject(folder, dry_run=dry_run, allow_dirty=allow_dirty)
    done = f"{folder} would be yours." if dry_run else f"{folder} is yours."
    Console(format_, verbose=verbose).report(report, done=done)
    return report.exit_code


@main.command()
@command
def schema() -> int:
    """Print the JSON Schema of provider.yaml, for editors."""
    from capsmith.commands.build import schema_text
    from capsmith.console import Console

    Console().text(schema_text().rstrip("\n"))
    return 0


@main.command()
@click.argument("rule")
@format_option()
@command
def explain(rule: str, format_: str) -> int:
    """Explain the contract rule RULE, for example IC-05."""
    from capsmith.commands.rules import explain
    from capsmith.console import Console
    from capsmith.contract.explain import lines

    explanation = explain(rule)
    console = Console(format_)
    if format_ == "json":
        console.data(explanation)
    else:
        console.text("\n".join(lines(explanation)))
    return 0


@main.command()
@click.option("--page", help="List only the rules of one page, for example infra-machine.")
@click.option("--contract", help="List only the rules of one contract version.")
@click.option("--level", type=click.Choice(["MUST", "SHOULD", "MAY", "INFO"]))
@format_option()
@command
def rules(page: str | None, contract: str | None, level: str | None, format_: str) -> int:
    """List the contract rules that capsmith knows."""
    from capsmith.commands.rules import rules
    from capsmith.console import Console
    from capsmith.contract.explain import table_row

    rows = rules(page, contract, level)
    console = Console(format_)
    if format_ == "json":
        console.data(rows)
    else:
        console.table([table_row(row) for row in rows])
    return 0
