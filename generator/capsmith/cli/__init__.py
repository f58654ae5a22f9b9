"""The command line: parse options, run a command, print its report, return an exit code.

Modules behind a command are imported inside it, so that ``--help`` and completion stay as fast as
click itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from capsmith import __version__
from capsmith.cli.conformance import conformance
from capsmith.cli.import_ import import_
from capsmith.cli.lab import lab
from capsmith.cli.new import generate, new
from capsmith.cli.options import (
    FOLDER,
    PAGES,
    CapsmithGroup,
    blueprints_option,
    format_command,
    format_option,
    handle_exit,
    import_pydantic,
)
from capsmith.cli.reference import explain, reference, rules, schema
from capsmith.cli.update import update
from capsmith.cli.verify import verify

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = re.compile(r'^__version__.* = "([^"]+)"$', re.MULTILINE)
_SHELLS = ("bash", "zsh", "fish")
_COMPLETION_VARIABLE = "_CAPSMITH_COMPLETE"


def read_versions() -> tuple[str, ...]:
    """Return the lines that ``--version`` prints, starting with capsmith's own version."""
    # Imported here, because every --help imports this module.
    from capsmith import resources
    from capsmith.contract.compatibility import load_compatibility
    from capsmith.contract.load import list_versions

    core = load_compatibility(resources.schemas()).core

    source = (resources.runtime() / "version.py").read_text(encoding="utf-8")
    match = _VERSION.search(source)
    assert match is not None
    return (
        f"capsmith {__version__}",
        f"capsmith_runtime {match[1]}",
        f"contracts {', '.join(list_versions())}",
        f"core {', '.join(each.release for each in core.executed)}",
    )


def _show_versions(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Print the versions and end the run, if the option was given."""
    if value and not context.resilient_parsing:
        click.echo("\n".join(read_versions()))
        context.exit()


@click.group(
    cls=CapsmithGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_versions,
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
@handle_exit
def validate(spec: Path, blueprints: Path | None, explain: bool, format_: str) -> int:
    """Check SPEC (default: provider.yaml) against the contract."""
    import_pydantic()
    from capsmith.commands.validate import validate
    from capsmith.console import Console

    report, resolution = validate(spec, blueprints)
    console = Console(format_)
    if explain and resolution is not None:
        console.print_data(resolution)
    else:
        console.print_report(report, done=f"{spec} is valid.")
    return report.exit_code


main.add_command(generate)
main.add_command(new)
main.add_command(update)
main.add_command(import_)
main.add_command(verify)
main.add_command(conformance)
main.add_command(lab)
main.add_command(schema)
main.add_command(explain)
main.add_command(rules)
main.add_command(reference)


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@format_option(*PAGES)
@handle_exit
def doctor(folder: Path, format_: str) -> int:
    """Show contract versions, file ownership and pending updates in DIR (default: .)."""
    import_pydantic()
    from capsmith.commands.doctor import examine, format_facts, make_page
    from capsmith.console import Console

    report, facts = examine(folder)
    console = Console(format_)
    if format_ in PAGES:
        console.print_page(make_page(report, facts, format_command()))
        return report.exit_code
    if format_ != "json":
        console.print_text("\n".join(format_facts(facts)))
    console.print_report(report, done="", facts=facts)
    return report.exit_code


@main.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--allow-dirty", is_flag=True, help="Continue despite uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="List every file that changes.")
@format_option()
@handle_exit
def eject(folder: Path, dry_run: bool, allow_dirty: bool, verbose: bool, format_: str) -> int:
    """Remove capsmith from the repository in DIR (default: .); every file becomes yours."""
    import_pydantic()
    from capsmith.commands.eject import eject
    from capsmith.console import Console

    report = eject(folder, dry_run=dry_run, allow_dirty=allow_dirty)
    done = f"{folder} would be yours." if dry_run else f"{folder} is yours."
    Console(format_, verbose=verbose).print_report(report, done=done)
    return report.exit_code


@main.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
@handle_exit
def completion(context: click.Context, shell: str) -> int:
    """Print the completion script for SHELL: bash, zsh or fish.

    \b
    bash: echo 'eval "$(capsmith completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(capsmith completion zsh)"' >> ~/.zshrc
    fish: capsmith completion fish > ~/.config/fish/completions/capsmith.fish
    """
    # Imported here, because --help does not need it.
    from click.shell_completion import get_completion_class

    from capsmith.console import Console

    kind = get_completion_class(shell)
    assert kind is not None  # click has all three
    script = kind(context.find_root().command, {}, "capsmith", _COMPLETION_VARIABLE)
    Console().print_text(script.source().strip("\n"))
    return 0
