"""``capsmith schema``, ``explain``, ``rules`` and ``reference``: print capsmith's data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from capsmith.cli.options import FOLDER, format_option, handle_exit, import_pydantic

if TYPE_CHECKING:
    from pathlib import Path

_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_RULE = re.compile(r"[A-Z]{2,3}[0-9]{1,2}", re.IGNORECASE)


@click.command()
@handle_exit
def schema() -> int:
    """Print the JSON Schema for provider.yaml, for use in editors."""
    from capsmith.commands.build import read_schema
    from capsmith.console import Console

    Console().print_text(read_schema().rstrip("\n"))
    return 0


@click.command()
@click.argument("subject", metavar="RULE|KIND")
@click.option(
    "--spec",
    metavar="FILE",
    type=FOLDER,
    default="provider.yaml",
    show_default=True,
    help="The provider.yaml that declares KIND.",
)
@format_option()
@handle_exit
def explain(subject: str, spec: Path, format_: str) -> int:
    """Explain a contract rule, for example IC-05, or a kind in a provider.yaml.

    For a kind it prints its role, its API versions, and the references to and from other kinds.
    """
    from capsmith.console import Console

    console = Console(format_)
    if _KIND.fullmatch(subject) and not _RULE.fullmatch(subject):
        import_pydantic()
        from capsmith.commands.explain import explain_kind
        from capsmith.output.relations import format_kind

        report, kind = explain_kind(spec, subject)
        if kind is None:
            console.print_report(report, done="")
            return report.exit_code
        explanation, lines = kind, format_kind(kind)
    else:
        from capsmith.commands.reference import explain_rule
        from capsmith.contract.explain import format_lines

        explanation = explain_rule(subject)
        lines = format_lines(explanation)
    if format_ == "json":
        console.print_data(explanation)
    else:
        console.print_text("\n".join(lines))
    return 0


@click.command()
@click.option("--page", help="List only the rules of one page, for example infra-machine.")
@click.option("--contract", help="List only the rules of one contract version.")
@click.option("--level", type=click.Choice(["MUST", "SHOULD", "MAY", "INFO"]))
@format_option()
@handle_exit
def rules(page: str | None, contract: str | None, level: str | None, format_: str) -> int:
    """List the contract rules that capsmith knows."""
    from capsmith.commands.reference import list_rules
    from capsmith.console import Console
    from capsmith.contract.explain import format_row

    rows = list_rules(page, contract, level)
    console = Console(format_)
    if format_ == "json":
        console.print_data(rows)
    else:
        console.print_table([format_row(row) for row in rows])
    return 0


@click.command()
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=FOLDER,
    default="reference",
    show_default=True,
    help="The folder to write.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["markdown", "html"]),
    default="markdown",
    show_default=True,
    help="Format of the pages.",
)
@handle_exit
def reference(output: Path, format_: str) -> int:
    """Write the contract reference: fields and rules, with a page for each role.

    Pages from an earlier run are replaced; other files are not.
    """
    import_pydantic()
    from capsmith.commands.reference import write_reference
    from capsmith.console import Console

    number = write_reference(output, format_)
    Console().print_text(f"{number} pages are in {output}.")
    return 0
