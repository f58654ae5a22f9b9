"""The command line: parse options, run a command, print its report, return an exit code.

The module of a command is imported when it runs, and the modules behind it inside its function, so
that ``--help`` and completion stay as fast as click itself.
"""

from __future__ import annotations

import click

from capsmith.cli.group import CapsmithGroup, CommandReference

_COMMANDS = {
    "completion": CommandReference(
        "capsmith.cli.completion",
        "completion",
        "Print the completion script for SHELL: bash, zsh or fish.",
    ),
    "conformance": CommandReference(
        "capsmith.cli.conformance",
        "conformance",
        "Check the behaviour of the provider in RELEASE, whatever its language.",
    ),
    "doctor": CommandReference(
        "capsmith.cli.repository",
        "doctor",
        "Show contract versions, file ownership and pending updates in DIR (default: .).",
    ),
    "eject": CommandReference(
        "capsmith.cli.repository",
        "eject",
        "Remove capsmith from the repository in DIR (default: .); every file becomes yours.",
    ),
    "explain": CommandReference(
        "capsmith.cli.reference",
        "explain",
        "Explain a contract rule, for example IC-05, or a kind in a provider.yaml.",
    ),
    "generate": CommandReference(
        "capsmith.cli.new",
        "generate",
        "Generate a provider repository from SPEC (default: provider.yaml).",
    ),
    "import": CommandReference(
        "capsmith.cli.import_",
        "import_",
        "Write a provider.yaml from which capsmith generates the CRDs in PATH.",
    ),
    "lab": CommandReference(
        "capsmith.cli.lab",
        "lab",
        "Run a provider in a management cluster on this computer, without containers.",
    ),
    "new": CommandReference(
        "capsmith.cli.new",
        "new",
        "Ask the essential questions and generate a first provider repository in DIR.",
    ),
    "reference": CommandReference(
        "capsmith.cli.reference",
        "reference",
        "Write the contract reference: fields and rules, with a page for each role.",
    ),
    "rules": CommandReference(
        "capsmith.cli.reference",
        "rules",
        "List the contract rules that capsmith knows.",
    ),
    "schema": CommandReference(
        "capsmith.cli.reference",
        "schema",
        "Print the JSON Schema for provider.yaml, for use in editors.",
    ),
    "update": CommandReference(
        "capsmith.cli.update",
        "update",
        "Bring the repository in DIR (default: .) up to date with its provider.yaml and this"
        " capsmith.",
    ),
    "validate": CommandReference(
        "capsmith.cli.repository",
        "validate",
        "Check SPEC (default: provider.yaml) against the contract.",
    ),
    "verify": CommandReference(
        "capsmith.cli.verify",
        "verify",
        "Check providers' releases in PATH (files or folders), whatever their language.",
    ),
}


def _show_versions(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    """Print the versions and end the run, if the option was given."""
    if value and not context.resilient_parsing:
        from capsmith.cli.versions import read_versions

        click.echo("\n".join(read_versions()))
        context.exit()


@click.group(
    cls=CapsmithGroup,
    references=_COMMANDS,
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
