"""``capsmith reference``: its options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from capsmith.cli.imports import import_pydantic
from capsmith.cli.options import FOLDER, command

if TYPE_CHECKING:
    from pathlib import Path


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
@command
def reference(output: Path, format_: str) -> int:
    """Write the reference of the contract: its fields and rules, a page for each role.

    Pages of an earlier run are replaced, and no other file.
    """
    import_pydantic()
    from capsmith.commands.reference import write_reference
    from capsmith.console import Console

    number = write_reference(output, format_)
    Console().text(f"{number} pages are in {output}.")
    return 0
