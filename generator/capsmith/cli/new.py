"""``capsmith generate`` and ``new``: a repository from a file, or from answers to questions."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from capsmith.cli.options import (
    FOLDER,
    blueprints_option,
    format_option,
    handle_exit,
    import_pydantic,
    no_blueprints_option,
)

if TYPE_CHECKING:
    from pathlib import Path

    from capsmith.console import Console
    from capsmith.report import Report
    from capsmith.scaffold import ScaffoldOptions


def suggest_commands(folder: Path) -> tuple[str, ...]:
    """Return the shell commands that install, test and demonstrate a new repository in ``folder``.

    No command requires an activated environment, which could hide the capsmith command itself.
    """
    here = str(folder) == "."
    # A folder such as -x would be an option of cd.
    named = f"./{folder}" if str(folder).startswith("-") else str(folder)
    enter = "" if here else f"cd {shlex.quote(named)} && "
    return (
        f"{enter}python3 -m venv .venv",
        "make setup test",
        "capsmith lab demo",
    )


def _beside_others(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-f",
        "--beside-others",
        is_flag=True,
        help="Allow other files in DIR; they are never replaced.",
    )(function)


@click.command()
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
@handle_exit
def generate(
    spec: Path,
    output: Path | None,
    beside_others: bool,
    verbose: bool,
    format_: str,
    blueprints: Path | None,
    no_blueprints: bool,
) -> int:
    """Generate a provider repository from SPEC (default: provider.yaml).

    In an existing repository, run capsmith update instead.
    """
    from capsmith.console import Console

    folder = output if output is not None else spec.parent
    console = Console(format_, verbose=verbose)
    with console.show_working(f"Generating {folder}"):
        report = _reuse(spec, folder) if blueprints is None else None
        if report is None:
            report = _generate(spec, folder, beside_others, blueprints, no_blueprints)
    _report(console, report, folder, f"{folder} is up to date with {spec}.")
    return report.exit_code


def _reuse(spec: Path, folder: Path) -> Report | None:
    from capsmith.commands.recorded_output import reuse_output

    return reuse_output(spec, folder)


def _generate(
    spec: Path, folder: Path, beside_others: bool, blueprints: Path | None, no_blueprints: bool
) -> Report:
    # Imported here, because a repository that was generated before needs nothing of it.
    import_pydantic()
    from capsmith.commands.generate import generate
    from capsmith.commands.plan import UpdateOptions

    options = UpdateOptions(blueprints=blueprints, no_blueprints=no_blueprints)
    return generate(spec, folder, beside_others=beside_others, options=options, record=True)


class _CommandWithQuestions(click.Command):
    """A command whose help lists the questions, which it reads only then."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from capsmith import scaffold

        with formatter.section("Keys"):
            formatter.write_dl(list(scaffold.list_questions().items()))


@click.command(cls=_CommandWithQuestions)
@click.argument("arguments", nargs=-1, metavar="[DIR] [KEY=ANSWER]...")
@click.option("--no-input", is_flag=True, help="Do not ask; use the defaults.")
@click.option("--replay", is_flag=True, help="Do not ask; use the answers of the previous run.")
@click.option("--replay-file", type=FOLDER, help="Do not ask; use the answers in this file.")
@click.option("--config-file", type=FOLDER, help="Cookiecutter's user configuration.")
@click.option("--default-config", is_flag=True, help="Ignore the user configuration.")
@_beside_others
@format_option()
@handle_exit
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
    options = scaffold.ScaffoldOptions(
        no_input=no_input,
        overrides=dict(argument.split("=", 1) for argument in arguments if "=" in argument),
        config_file=config_file,
        default_config=default_config,
        replay=replay,
        replay_file=replay_file,
    )
    return _create(options, next(iter(folders), None), beside_others, format_)


def _create(options: ScaffoldOptions, named: str | None, beside_others: bool, format_: str) -> int:
    """Ask questions and generate, again while the answers lead to errors; return the exit code."""
    from pathlib import Path

    from capsmith import scaffold

    import_pydantic()
    from capsmith.commands.generate import create
    from capsmith.console import Console
    from capsmith.report import Report

    console = Console(format_)
    while True:
        proposal = scaffold.propose_spec(options)
        unusable = scaffold.check_answers(proposal.answers)
        if unusable:
            report = Report(unusable)
            console.print_report(report, done="")
            if not options.asks:
                return report.exit_code
            options = options.retry(proposal, {each.location.file for each in unusable})
            continue
        folder = Path(named if named is not None else proposal.folder)
        with console.show_working(f"Generating {folder}"):
            report = create(proposal.text, folder, beside_others=beside_others)
        _report(console, report, folder, f"{folder} is a provider repository.")
        if report.exit_code == 0 or report.outcomes or not options.asks:
            return report.exit_code
        options = options.retry(proposal)


def _report(console: Console, report: Report, folder: Path, done: str) -> None:
    """Print the report and, after a first run, the commands to run next."""

    commands = suggest_commands(folder) if report.is_first and report.exit_code == 0 else ()
    console.print_report(report, done=done, facts={"next": list(commands)} if commands else None)
    console.print_next_commands(commands)
