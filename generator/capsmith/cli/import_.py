"""``capsmith import``: convert existing CRDs to a provider.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capsmith.cli.options import FOLDER, format_option, handle_exit, import_pydantic

if TYPE_CHECKING:
    from pathlib import Path

_ROLES = (
    *("InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane"),
    *("IPPool", "GlobalIPPool", "Addon", "Remediation", "Resource"),
)


def _role(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Return the roles by kind; raise BadParameter for an invalid value."""
    found = {}
    for value in values:
        kind, equals, role = value.partition("=")
        if not kind or not equals or role not in _ROLES:
            expected = f"KIND=ROLE; the roles are {', '.join(_ROLES)}"
            raise click.BadParameter(f"{value!r} is not {expected}.")
        found[kind] = role
    return found


def _checked(_context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return a valid name or URL; an invalid one would make the whole file invalid."""
    from capsmith.safetext import DnsLabel, RepositoryUrl

    form, example = {
        "name": (DnsLabel, "acme"),
        "repository": (RepositoryUrl, "https://github.com/acme/cluster-api-provider-acme"),
    }[str(parameter.name)]
    try:
        return form(value) if value else ""
    except ValueError:
        raise click.BadParameter(f"{value!r} is not valid; an example is {example}.") from None


@click.command("import")
@click.argument("paths", type=FOLDER, nargs=-1, required=True, metavar="PATH...")
@click.option(
    "-o",
    "--output",
    type=FOLDER,
    default="provider.yaml",
    show_default=True,
    help="The file to write, or to compare with --check.",
)
@click.option(
    "--name",
    default="",
    callback=_checked,
    help="Name of the provider [default: from the labels of the CRDs].",
)
@click.option(
    "--repository",
    default="",
    callback=_checked,
    help="URL of the repository that releases the provider.",
)
@click.option(
    "--role",
    "roles",
    metavar="KIND=ROLE",
    multiple=True,
    callback=_role,
    help="Role of a kind whose name is misleading, such as AcmePooledMachine=Resource.",
)
@click.option("--partial", is_flag=True, help="Exit with 0 even if something cannot be expressed.")
@click.option("--check", is_flag=True, help="Compare with an existing file; write nothing.")
@click.option("--dry-run", is_flag=True, help="Report what would be lost; write nothing.")
@format_option()
@handle_exit
def import_(
    paths: tuple[Path, ...],
    output: Path,
    name: str,
    repository: str,
    roles: dict[str, str],
    partial: bool,
    check: bool,
    dry_run: bool,
    format_: str,
) -> int:
    """Write a provider.yaml from which capsmith generates the CRDs in PATH.

    PATH is a components file, a folder of CRDs or a source tree.  Everything that provider.yaml
    cannot express is reported with its path; nothing is dropped silently.
    """
    import_pydantic()
    from capsmith.commands.import_crds import ImportOptions, check_provider, import_provider
    from capsmith.console import Console

    if check and dry_run:
        raise click.UsageError("--check and --dry-run exclude each other.")
    options = ImportOptions(name, repository, roles, partial, dry_run)
    run = check_provider if check else import_provider
    console = Console(format_)
    with console.show_working("Reading CRDs"):
        result = run(paths, output, options)
    console.print_report(result.report, done="", facts=result.facts)
    if format_ == "text":
        console.print_text(result.summary)
    return result.report.exit_code
