"""``capsmith verify``: check any provider's release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from capsmith.cli.options import FOLDER, PAGES, format_command, format_option, handle_exit

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=FOLDER)
@click.option(
    "--upgrade",
    type=FOLDER,
    metavar="OLD",
    help="Report what the installed release OLD loses when clusterctl replaces it with PATH.",
)
@click.option(
    "--live", is_flag=True, help="Also ask the API server in a kubeconfig, with dry runs."
)
@click.option(
    "--kubeconfig",
    type=FOLDER,
    metavar="FILE",
    help="The kubeconfig [default: the one that kubectl uses].",
)
@click.option("--context", metavar="NAME", help="The context [default: the current one].")
@click.option(
    "--install-crds",
    is_flag=True,
    help="With --live: install missing CRDs, and remove them at the end.",
)
@click.option(
    "--target",
    metavar="RELEASES",
    help="Releases of core, such as core=v1.13..v1.14 [default: all supported releases; the report "
    "names those that are known only from their source].  The release that ends support for a "
    "contract, core=v1.16, lists what is left to do until then.",
)
@click.option(
    "--role",
    "roles",
    metavar="KIND=ROLE",
    multiple=True,
    help="The role of a kind, such as InfraMachine, or none.",
)
@click.option(
    "--version", "release", metavar="TAG", help="The version of the release, such as v1.2.0."
)
@click.option("--advice", is_flag=True, help="Also report violations that break nothing.")
@click.option("--select", metavar="IDS", multiple=True, help="Report only these rules: CC,CRD-02.")
@click.option("--ignore", metavar="IDS", multiple=True, help="Do not report these rules.")
@click.option(
    "--config",
    type=FOLDER,
    metavar="FILE",
    help="Roles and accepted violations [default: .capsmith-verify.yaml].",
)
@click.option("--baseline", type=FOLDER, metavar="FILE", help="Accept the violations in FILE.")
@click.option("--write-baseline", type=FOLDER, metavar="FILE", help="Write the violations to FILE.")
@format_option("sarif", "junit", *PAGES)
@handle_exit
def verify(paths: tuple[Path, ...], format_: str, **options: Any) -> int:
    """Check providers' releases in PATH (files or folders), whatever their language.

    Reports what breaks under the releases of core and clusterctl in --target, and what breaks only
    under certain conditions.

    Exit codes: 0 nothing breaks, 1 something breaks, 2 usage error or unreadable input.
    """
    from capsmith.commands.verify import VerifyRequest, run_verify
    from capsmith.console import Console
    from capsmith.errors import InvalidOption

    if not options["live"]:
        _refuse_alone(options, "kubeconfig", "context", "install_crds")
    elif options["upgrade"] is not None:
        raise click.UsageError("--live and --upgrade exclude each other")
    set_options = {name: value for name, value in options.items() if value is not None}
    console = Console(format_)
    try:
        name = str(paths[0]) if len(paths) == 1 else f"{len(paths)} paths"
        with console.show_working(f"Verifying {name}"):
            verdict = run_verify(paths, VerifyRequest(**set_options))
    except InvalidOption as error:
        raise click.UsageError(str(error)) from None
    if format_ in PAGES:
        from pathlib import Path

        from capsmith.judge.release.page import Judged, make_page

        judged = Judged(tuple(map(str, paths)), str(options["upgrade"] or ""))
        console.print_page(make_page(verdict, judged, format_command(), str(Path.cwd())))
    else:
        console.print_verdict(verdict)
    return 0 if options["write_baseline"] is not None else verdict.exit_code


def _refuse_alone(options: dict[str, Any], *names: str) -> None:
    """Raise UsageError for each given option that has no effect without --live."""
    for name in names:
        if options[name]:
            raise click.UsageError(f"--{name.replace('_', '-')} requires --live")
