"""capsmith completion: the script by which a shell completes capsmith's commands and options."""

from __future__ import annotations

import click

from capsmith.cli.options import command

_SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_CAPSMITH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
@command
def completion(context: click.Context, shell: str) -> int:
    """Print the completion script of SHELL: bash, zsh or fish.

    \b
    bash: echo 'eval "$(capsmith completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(capsmith completion zsh)"' >> ~/.zshrc
    fish: capsmith completion fish > ~/.config/fish/completions/capsmith.fish
    """
    # Imported here: --help does not need it.
    from click.shell_completion import get_completion_class

    from capsmith.console import Console

    kind = get_completion_class(shell)
    assert kind is not None  # click has all three
    script = kind(context.find_root().command, {}, "capsmith", _VARIABLE)
    Console().text(script.source().strip("\n"))
    return 0
