"""The command line: options -> pipeline -> console -> exit code.

The pipeline is imported inside the commands, so that ``--help`` and completion stay as quick as
click itself.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from capsmith import __version__
from capsmith.cli.options import (
    FOLDER,
    blueprints_option,
    command,
    format_option,
    no_blueprints_option,
)
from capsmith.cli.update import update


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="capsmith")
def main() -> None:
    """Generate Cluster API providers in Python from one provider.yaml.

    Exit codes: 0 done, 1 the answer is no (findings, drift), 2 usage or unreadable input.
    """


@main.command()
@click.argument("spec", type=FOLDER, default="provider.yaml")
@blueprints_option
@click.option("--explain", is_flag=True, help="Show everything that follows from the file.")
@format_option("sarif", "junit")
@command
def validate(spec: Path, blueprints: Path | None, explain: bool, format_: str) -> int:
    """Check SPEC (default: provider.yaml) against the contract."""
    from capsmith import pipeline
    from capsmith.console import Console

    report, resolution = pipeline.validate(spec, blueprints)
    console = Console(format_)
    if explain and resolution is not None:
        console.data(resolution)
    else:
        console.report(report, done=f"{spec} is valid.")
    return report.exit_code


def _beside_others(function: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "-f", "--beside-others", is_flag=True, help="DIR may hold other files; none is replaced."
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
@click.option("-v", "--verbose", is_flag=True, help="Name every file that changes.")
@format_option()
@command
def generate(
    spec: Path,
    output: Path | None,
    beside_others: bool,
    verbose: bool,
    format_: str,
    **overlay: Any,
) -> int:
    """Generate a provider repository from SPEC (default: provider.yaml)."""
    from capsmith import pipeline
    from capsmith.console import Console
    from capsmith.pipeline.engine import Asked

    folder = output if output is not None else spec.parent
    asked = Asked(**overlay)
    report = pipeline.generate(spec, folder, beside_others=beside_others, asked=asked)
    Console(format_, verbose=verbose).report(report, done=f"{folder} is up to date with {spec}.")
    return report.exit_code


main.add_command(update)


@main.command()
@click.argument("arguments", nargs=-1, metavar="[DIR] [KEY=ANSWER]...")
@click.option("--no-input", is_flag=True, help="Ask nothing; take the defaults.")
@click.option("--replay", is_flag=True, help="Ask nothing; take the answers of the last time.")
@click.option("--replay-file", type=FOLDER, help="Ask nothing; take the answers of this file.")
@click.option("--config-file", type=FOLDER, help="Cookiecutter's user configuration.")
@click.option("--default-config", is_flag=True, help="Do without a user configuration.")
@_beside_others
@format_option()
@command
def new(arguments: tuple[str, ...], beside_others: bool, format_: str, **answering: Any) -> int:
    """Ask the essentials, and generate a first provider repository in DIR.

    KEY=ANSWER answers a question beforehand.  Defaults come from cookiecutter's user
    configuration (~/.cookiecutterrc, default_context).
    """
    from capsmith import pipeline, scaffold
    from capsmith.console import Console

    folders = [argument for argument in arguments if "=" not in argument]
    if len(folders) > 1:
        raise click.UsageError(f"One DIR, please: {' '.join(folders)}")
    known = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
    console = Console(format_)
    options = scaffold.Options(overrides=known, **answering)
    while True:
        proposal = scaffold.propose(options)
        folder = Path(*folders) if folders else Path(proposal.folder)
        report = pipeline.create(proposal.text, folder, beside_others=beside_others)
        console.report(report, done=f"{folder} is a provider: its README.md says how to go on.")
        if report.exit_code == 0 or report.outcomes or not options.asks:
            return report.exit_code
        options = options.again(proposal)


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@format_option()
@command
def doctor(folder: Path, format_: str) -> int:
    """Tell what the provider in DIR (default: .) is on, and what an update would do."""
    from capsmith.console import Console
    from capsmith.pipeline import examining

    report, facts = examining.examine(folder)
    console = Console(format_)
    if format_ != "json":
        console.text("\n".join(examining.told(facts)))
    console.report(report, done="", facts=facts)
    return report.exit_code


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--allow-dirty", is_flag=True, help="Go on beside uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="Name every file that changes.")
@format_option()
@command
def eject(folder: Path, verbose: bool, format_: str, **options: bool) -> int:
    """Leave capsmith: every file of the repository in DIR (default: .) becomes yours."""
    from capsmith.console import Console
    from capsmith.pipeline import ejecting

    report = ejecting.eject(folder, **options)
    done = f"{folder} would be yours." if options["dry_run"] else f"{folder} is yours."
    Console(format_, verbose=verbose).report(report, done=done)
    return report.exit_code


@main.command()
@command
def schema() -> int:
    """Print the JSON Schema of provider.yaml, for editors."""
    from capsmith import pipeline
    from capsmith.console import Console

    Console().text(pipeline.schema_text().rstrip("\n"))
    return 0


@main.command()
@click.argument("rule")
@format_option()
@command
def explain(rule: str, format_: str) -> int:
    """Explain the contract rule RULE, for example IC-05."""
    from capsmith import pipeline
    from capsmith.console import Console
    from capsmith.contract.explain import lines

    explanation = pipeline.explain(rule)
    console = Console(format_)
    if format_ == "json":
        console.data(explanation)
    else:
        console.text("\n".join(lines(explanation)))
    return 0


@main.command()
@click.option("--page", help="Only the rules of one page, for example infra-machine.")
@click.option("--contract", help="Only the rules of one contract version.")
@click.option("--level", type=click.Choice(["MUST", "SHOULD", "MAY", "INFO"]))
@format_option()
@command
def rules(page: str | None, contract: str | None, level: str | None, format_: str) -> int:
    """List the contract rules that capsmith knows."""
    from capsmith import pipeline
    from capsmith.console import Console

    rows = pipeline.rules(page, contract, level)
    console = Console(format_)
    if format_ == "json":
        console.data(rows)
    else:
        console.table([[r["id"], r["level"], ",".join(r["contracts"]), r["title"]] for r in rows])
    return 0
