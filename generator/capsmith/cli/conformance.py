"""``capsmith conformance``: check the behaviour of any provider in a management cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from capsmith.cli.options import (
    FOLDER,
    PAGES,
    core_option,
    format_command,
    format_option,
    handle_exit,
    import_pydantic,
)

if TYPE_CHECKING:
    from pathlib import Path


@click.command()
@click.argument("release", metavar="RELEASE", type=FOLDER)
@click.option(
    "--kubeconfig",
    type=FOLDER,
    metavar="FILE",
    help="A management cluster in which core and the provider are already running.",
)
@click.option(
    "--manager",
    "managers",
    metavar="[TYPE=]COMMAND",
    multiple=True,
    help="Start this manager together with the real core and API server; requires Go.  Without"
    " a TYPE, it runs all providers in RELEASE.",
)
@click.option(
    "--with",
    "others",
    type=FOLDER,
    metavar="RELEASE",
    multiple=True,
    help="Another release that the clusters need; specify its manager with --manager TYPE=COMMAND.",
)
@click.option(
    "--simulate",
    type=FOLDER,
    metavar="REPOSITORY",
    help="Simulate what clusters need beside the bootstrap or control plane provider in this"
    " repository made by capsmith.",
)
@core_option("The release of core to start.")
@click.option(
    "--env", metavar="NAME=VALUE", multiple=True, help="An environment variable for the managers."
)
@click.option(
    "--variable",
    "variables",
    metavar="NAME=VALUE",
    multiple=True,
    help="A variable for the components or the cluster template.",
)
@click.option("--flavor", default="", help="Flavor of the cluster template to use.")
@click.option(
    "--objects",
    type=FOLDER,
    metavar="FILE",
    help="File with objects to use instead of a cluster template.",
)
@click.option(
    "--apply",
    type=FOLDER,
    metavar="FILE",
    multiple=True,
    help="Objects to apply first, such as identities and their Secrets.",
)
@click.option(
    "--version",
    "release_version",
    metavar="TAG",
    help="The version of the release, such as v1.2.0.",
)
@click.option("--role", "roles", metavar="KIND=ROLE", multiple=True, help="The role of a kind.")
@click.option(
    "--select", metavar="IDS", multiple=True, help="Run only these checks or rules: IM,SM-08."
)
@click.option("--ignore", metavar="IDS", multiple=True, help="Do not run these checks or rules.")
@click.option(
    "--timeout",
    type=float,
    default=180.0,
    show_default=True,
    help="Maximum seconds to wait for a state.",
)
@click.option(
    "--quiet",
    type=float,
    default=3.0,
    show_default=True,
    help="Seconds to watch for unwanted changes.",
)
@click.option("--strict", is_flag=True, help="Treat warnings as failures: exit with 1.")
@click.option("--logs", type=FOLDER, metavar="DIR", help="Keep the logs of all processes in DIR.")
@format_option("junit", *PAGES)
@handle_exit
def conformance(release: Path, format_: str, **options: Any) -> int:
    """Check the behaviour of the provider in RELEASE, whatever its language.

    RELEASE is a folder with a release's assets.  The objects of each role go through their
    lifecycle in a separate namespace: infrastructure with machine pools (owners, waits, pause,
    external management, failure domains, restart, health check, deletion, clusterctl move), a whole
    cluster for bootstrap and control plane providers, and claims on address pools.  Everything that
    the run created is removed at the end, even after Ctrl-C.  Real machines are created: use a test
    account.

    A failed check is only a warning if the contract merely recommends its rules.

    Exit codes: 0 no check failed, 1 a check failed, 2 usage error, unreadable input, or a process
    that does not start.
    """
    import_pydantic()
    from capsmith.commands.conformance import run
    from capsmith.commands.conformance_release import ConformanceRequest
    from capsmith.console import Console
    from capsmith.errors import InvalidOption

    console = Console(format_)
    set_options = {name: value for name, value in options.items() if value is not None}
    try:
        report = run(
            release, ConformanceRequest(**set_options), console.print_progress, console.print_result
        )
    except InvalidOption as error:
        raise click.UsageError(str(error)) from None
    if format_ in PAGES:
        from capsmith.judge.running.page import make_page

        console.print_page(make_page(report, format_command()))
    else:
        console.print_conformance(report)
    return report.exit_code
