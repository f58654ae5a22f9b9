"""``capsmith completion``: print the completion script for a shell."""

from __future__ import annotations

import click

from capsmith.cli.options import handle_exit

_SHELLS = ("bash", "zsh", "fish")
_COMPLETION_VARIABLE = "_CAPSMITH_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), metavar="SHELL")
@click.pass_context
@handle_exit
def completion(context: click.Context, shell: str) -> int:
    """Print the completion script for SHELL: bash, zsh or fish.

    \b
    bash: echo 'eval "$(capsmith completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(capsmith completion zsh)"' >> ~/.zshrc
    fish: capsmith completion fish > ~/.config/fish/completions/capsmith.fish
    """
    # Imported here, because --help does not need it.
    from click.shell_completion import get_completion_class

    from capsmith.console import Console

    kind = get_completion_class(shell)
    assert kind is not None  # click has all three
    script = kind(context.find_root().command, {}, "capsmith", _COMPLETION_VARIABLE)
    Console().print_text(script.source().strip("\n"))
    return 0
