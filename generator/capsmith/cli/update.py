"""``capsmith update``: bring a repository up to date, or move it to another contract version."""

from __future__ import annotations

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

    from capsmith.cli.arguments import UpdateArguments, UpdateMode
    from capsmith.report import Report

_PREVIEWED = "is unchanged: this was a preview."
_UP_TO_DATE = "is up to date."


def _upgrade_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that also change provider.yaml."""
    for option in (
        click.option(
            "--release",
            metavar="SERIES",
            help="The release series that gets the change [default: the next].",
        ),
        click.option(
            "--drop-api-version",
            metavar="NAME",
            multiple=True,
            help="Remove an API version that is no longer served.",
        ),
        click.option(
            "--keep-api-version", is_flag=True, help="Change the shape of API versions in place."
        ),
        click.option(
            "--api-version",
            metavar="NAME",
            help="The name of the new API version [default: the next].",
        ),
        click.option(
            "--contract", metavar="LIST", help="Follow these contracts: v1beta1,v1beta2 or v1beta2."
        ),
    ):
        function = option(function)
    return function


@click.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@click.option("--check", is_flag=True, help="Report drift; write nothing.")
@click.option("--dry-run", is_flag=True, help="Show what would happen; write nothing.")
@click.option("--diff", is_flag=True, help="Show changes as a diff; write nothing.")
@click.option(
    "--continue", "resume", is_flag=True, help="Finish the update after you resolved the conflicts."
)
@click.option("--abort", is_flag=True, help="Undo an unfinished update.")
@click.option(
    "--conflict",
    "style",
    type=click.Choice(["merge", "diff3"]),
    default="merge",
    show_default=True,
    help="Show both sides between conflict markers, or the original as well.",
)
@click.option("--force", is_flag=True, help="Replace generated files that were edited.")
@click.option("--restore", metavar="PATH", multiple=True, help="Write a deleted file again.")
@click.option(
    "--mine", metavar="PATH", multiple=True, help="Take over a file: capsmith leaves it unchanged."
)
@click.option(
    "--not-mine", metavar="PATH", multiple=True, help="Let capsmith manage the file again."
)
@click.option(
    "--runtime",
    type=click.Choice(["vendored", "package"]),
    help="Change the runtime to a copy in vendor/, or to the package capsmith-runtime.",
)
@_upgrade_options
@blueprints_option
@no_blueprints_option
@click.option("--allow-dirty", is_flag=True, help="Continue despite uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="List every file that changes.")
@format_option()
@handle_exit
def update(folder: Path, verbose: bool, format_: str, **options: Any) -> int:
    """Bring the repository in DIR (default: .) up to date with its provider.yaml and this capsmith.

    --contract and --drop-api-version edit provider.yaml first: they move the provider from one
    contract version to the next, in stages, each of which is a release of its own.
    --runtime edits provider.yaml as well.

    Exit codes: 0 success, 1 drift, conflicts or refusals, 2 usage error or unreadable input.
    """
    # Imported here, because every --help imports this module, and dataclasses are slow to import.
    from capsmith.cli.arguments import UpdateArguments, UpdateMode
    from capsmith.console import Console
    from capsmith.printable import make_printable

    arguments = UpdateArguments(**options)
    mode = arguments.mode
    console = Console(format_, verbose=verbose)
    if not arguments.changes_spec:
        with console.show_working(f"Updating {folder}"):
            report, done = _update(folder, mode, arguments)
        console.print_report(report, done=f"{folder} {done}")
        return report.exit_code
    request = arguments.request()
    import_pydantic()
    from capsmith.commands.upgrade import upgrade

    dry_run = mode is UpdateMode.PREVIEW
    with console.show_working(f"Moving {folder} to another contract"):
        report, facts = upgrade(folder, request, arguments.options(), dry_run=dry_run)
    done = _PREVIEWED if dry_run else _UP_TO_DATE
    console.print_report(report, done=f"{folder} {done}", facts={"upgrade": facts})
    if facts is not None and format_ != "json":
        from capsmith.provider_upgrade.facts import format_facts

        console.print_text("\n".join(make_printable(line) for line in format_facts(facts)))
    return report.exit_code


def _update(folder: Path, mode: UpdateMode, arguments: UpdateArguments) -> tuple[Report, str]:
    """Return the report, and the last line to print for a run without errors."""
    from capsmith.cli.arguments import UpdateMode

    if mode is UpdateMode.CHECK and not arguments.differs_from_last_run:
        from capsmith.commands.up_to_date import check_from_cache

        report = check_from_cache(folder, arguments.blueprints)
        if report is not None:
            return report, _UP_TO_DATE

    # Imported here, because a repository that is known to be up to date needs nothing else.
    import_pydantic()
    from capsmith.commands import update

    options = arguments.options()
    match mode:
        case UpdateMode.CHECK:
            return update.check(folder, options), _UP_TO_DATE
        case UpdateMode.RESUME:
            return update.resume(folder, force=options.force), _UP_TO_DATE
        case UpdateMode.ABORT:
            report = update.abort(folder, force=options.force)
            return report, "is as it was before the update."
        case UpdateMode.PREVIEW:
            return update.preview(folder, options), _PREVIEWED
        case UpdateMode.UPDATE:
            return update.update(folder, options), _UP_TO_DATE
