"""capsmith --version: versions of capsmith, of the library it ships, and of its contract data."""

from __future__ import annotations

import re

import click

from capsmith import __version__

_VERSION = re.compile(r'^__version__.* = "([^"]+)"$', re.MULTILINE)


def lines() -> tuple[str, ...]:
    """Return what ``--version`` prints, capsmith itself first."""
    # Imported here: each --help imports this module.
    from capsmith import resources
    from capsmith.contract.compatibility import load_compatibility
    from capsmith.contract.load import known_versions

    core = load_compatibility(resources.schemas()).core

    source = (resources.runtime() / "version.py").read_text(encoding="utf-8")
    match = _VERSION.search(source)
    assert match is not None
    return (
        f"capsmith {__version__}",
        f"capsmith_runtime {match[1]}",
        f"contracts {', '.join(known_versions())}",
        f"core {', '.join(each.release for each in core.executed)}",
    )


def show(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Print the versions and end the run, if the option was given."""
    if value and not context.resilient_parsing:
        click.echo("\n".join(lines()))
        context.exit()
