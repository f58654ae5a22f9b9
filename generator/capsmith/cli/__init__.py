"""The command line: options -> commands -> console -> exit code.

The modules behind a command are imported inside it, so that ``--help`` and completion stay as quick
as click itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from capsmith import __version__
from capsmith.cli.conformance import conformance
from capsmith.cli.import_ import import_
from capsmith.cli.imports import import_pydantic
from capsmith.cli.options import (
    FOLDER,
    Group,
    blueprints_option,
    command,
    format_option,
    no_blueprints_option,
)
from capsmith.cli.reference import reference
from capsmith.cli.update import update
from capsmith.cli.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

    from capsmith.scaffold import Options


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="capsmith")
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


def _beside_others(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-f", "--beside-others", is_flag=True, help="Allow other files in DIR; none is replaced."
    )(function)


@main.command()
@click.argument("spec", type=FOLDER, default="provider.yaml")
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=FOLDER,
    help="The provider repository [default: the folder of SPEC].",
)
@_beside_others
@blueprints_option
@no_blueprints_option
@click.option("-v", "--verbose", is_flag=True, help="List every file that changes.")
@format_option()
@command
def generate(
    spec: Path,
    output: Path | None,
    beside_others: bool,
    verbose: bool,
    format_: str,
    blueprints: Path | None,
    no_blueprints: bool,
) -> int:
    """Generate a provider repository from SPEC (default: provider.yaml)."""
    import_pydantic()
    from capsmith.commands.generate import generate
    from capsmith.commands.options import UpdateOptions
    from capsmith.console import Console

    folder = output if output is not None else spec.parent
    options = UpdateOptions(blueprints=blueprints, no_blueprints=no_blueprints)
    report = generate(spec, folder, beside_others=beside_others, options=options)
    Console(format_, verbose=verbose).report(report, done=f"{folder} is up to date with {spec}.")
    return report.exit_code


main.add_command(update)
main.add_command(import_)
main.add_command(verify)
main.add_command(conformance)
main.add_command(reference)


@main.command()
@click.argument("arguments", nargs=-1, metavar="[DIR] [KEY=ANSWER]...")
@click.option("--no-input", is_flag=True, help="Do not ask; use the defaults.")
@click.option("--replay", is_flag=True, help="Do not ask; use the answers of the previous run.")
@click.option("--replay-file", type=FOLDER, help="Do not ask; use the answers in this file.")
@click.option("--config-file", type=FOLDER, help="Cookiecutter's user configuration.")
@click.option("--default-config", is_flag=True, help="Ignore the user configuration.")
@_beside_others
@format_option()
@command
def new(
    arguments: tuple[str, ...],
    no_input: bool,
    replay: bool,
    replay_file: Path | None,
    config_file: Path | None,
    default_config: bool,
    beside_others: bool,
    format_: str,
) -> int:
    """Ask the essential questions and generate a first provider repository in DIR.

    KEY=ANSWER answers a question in advance.  Defaults come from cookiecutter's user
    configuration (~/.cookiecutterrc, default_context).
    """
    from capsmith import scaffold

    folders = [argument for argument in arguments if "=" not in argument]
    if len(folders) > 1:
        raise click.UsageError(f"Give at most one DIR, not {' '.join(folders)}.")
    options = scaffold.Options(
        no_input=no_input,
        overrides=dict(argument.split("=", 1) for argument in arguments if "=" in argument),
        config_file=config_file,
        default_config=default_config,
        replay=replay,
        replay_file=replay_file,
    )
    return _create(options, next(iter(folders), None), beside_others, format_)


def _create(options: Options, named: str | None, beside_others: bool, format_: str) -> int:
    """Ask and generate, again while the answers lead to errors; return the exit code."""
    from pathlib import Path

    from capsmith import scaffold

    import_pydantic()
    from capsmith.commands.generate import create
    from capsmith.console import Console
    from capsmith.report import Report
    from capsmith.scaffold.answers import check_answers

    console = Console(format_)
    while True:
        proposal = scaffold.propose(options)
        unusable = check_answers(proposal.answers)
        if unusable:
            report = Report(unusable)
            console.report(report, done="")
            if not options.asks:
                return report.exit_code
            options = options.again(proposal, {each.location.file for each in unusable})
            continue
        folder = Path(named if named is not None else proposal.folder)
        report = create(proposal.text, folder, beside_others=beside_others)
        console.report(report, done=f"{folder} is a provider; its README.md has the next steps.")
        if report.exit_code == 0 or report.outcomes or not options.asks:
            return report.exit_code
        options = options.again(proposal)


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
