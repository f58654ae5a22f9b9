"""capsmith update: in line with provider.yaml, and from one contract to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from capsmith.cli.options import (
    FOLDER,
    blueprints_option,
    command,
    format_option,
    no_blueprints_option,
)

_UPGRADE = ("contract", "api_version", "keep_api_version", "drop_api_version", "release")


def _upgrade_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that change provider.yaml too."""
    for option in (
        click.option("--release", metavar="SERIES", help="Its release series [default: the next]."),
        click.option(
            "--drop-api-version",
            metavar="NAME",
            multiple=True,
            help="Take an API version away for good.",
        ),
        click.option(
            "--keep-api-version", is_flag=True, help="Change the shape of API versions in place."
        ),
        click.option("--api-version", metavar="NAME", help="The new one [default: the next]."),
        click.option(
            "--contract", metavar="LIST", help="Follow these contracts: v1beta1,v1beta2 or v1beta2."
        ),
    ):
        function = option(function)
    return function


@click.command()
@click.argument("folder", metavar="[DIR]", type=FOLDER, default=".")
@click.option("--check", is_flag=True, help="Only say whether there is drift.")
@click.option("--dry-run", is_flag=True, help="Only say what would happen.")
@click.option("--diff", is_flag=True, help="Show what would change; change nothing.")
@click.option("--continue", "resume", is_flag=True, help="The conflicts are resolved: conclude.")
@click.option("--abort", is_flag=True, help="Bring back what was before an unfinished update.")
@click.option(
    "--conflict",
    "style",
    type=click.Choice(["merge", "diff3"]),
    default="merge",
    show_default=True,
    help="What stands between conflict markers: both sides, or their origin too.",
)
@click.option("--force", is_flag=True, help="Replace generated files that were edited.")
@click.option("--restore", metavar="PATH", multiple=True, help="Write a deleted file again.")
@click.option("--mine", metavar="PATH", multiple=True, help="Take a file over from capsmith.")
@click.option("--not-mine", metavar="PATH", multiple=True, help="Give it back.")
@_upgrade_options
@blueprints_option
@no_blueprints_option
@click.option("--allow-dirty", is_flag=True, help="Go on beside uncommitted changes.")
@click.option("-v", "--verbose", is_flag=True, help="Name every file that changes.")
@format_option()
@command
def update(folder: Path, verbose: bool, format_: str, **options: Any) -> int:
    """Bring the repository in DIR (default: .) in line with its provider.yaml and this capsmith.

    --contract and --drop-api-version change provider.yaml first: from one of Cluster API's
    contracts to the next, in stages that are released one after the other.

    Exit codes: 0 clean, 1 drift, conflicts or refusals, 2 unusable.
    """
    from capsmith.console import Console
    from capsmith.pipeline import choosing

    said = {name: options.pop(name) for name in _UPGRADE}
    chosen = [name for name in ("check", "dry_run", "resume", "abort") if options[name]]
    if len(chosen) > 1 or (options["diff"] and chosen[:1] in (["resume"], ["abort"])):
        raise click.UsageError("--check, --dry-run, --continue and --abort exclude each other.")
    if all(value in (None, False, ()) for value in said.values()):
        report, done = choosing.run_update(folder, "".join(chosen), **options)
        Console(format_, verbose=verbose).report(report, done=f"{folder} {done}")
        return report.exit_code
    _check_upgrade(said, chosen)
    report, done, plan = choosing.run_upgrade(folder, "".join(chosen), said, **options)
    console = Console(format_, verbose=verbose)
    console.report(report, done=f"{folder} {done}", facts={"upgrade": plan})
    if plan is not None and format_ != "json":
        from capsmith.provider.upgrade.facts import told

        console.text("\n".join(told(plan)))
    return report.exit_code


def _check_upgrade(said: dict[str, Any], chosen: list[str]) -> None:
    """Raises UsageError for options that do not go together."""
    if set(chosen) - {"dry_run"}:
        raise click.UsageError("--check, --continue and --abort change no contract.")
    if said["contract"] is not None and not said["contract"].strip(", "):
        raise click.UsageError("--contract names contracts, such as v1beta1,v1beta2.")
    if bool(said["contract"]) == bool(said["drop_api_version"]):
        raise click.UsageError("One of --contract and --drop-api-version, please.")
    if said["api_version"] and said["keep_api_version"]:
        raise click.UsageError("--api-version and --keep-api-version exclude each other.")
    if not said["contract"] and (said["api_version"] or said["keep_api_version"]):
        raise click.UsageError("--api-version and --keep-api-version go with --contract.")
