"""``capsmith validate``, ``doctor`` and ``eject``: judge a repository, or stop using capsmith."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capsmith.cli.options import (
    FOLDER,
    PAGES,
    blueprints_option,
    format_command,
    format_option,
    handle_exit,
    import_pydantic,
)

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
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


@click.command()
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


@click.command()
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
