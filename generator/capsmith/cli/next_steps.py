"""What to type after a first run: commands to copy, from where the user is."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def next_commands(folder: Path) -> tuple[str, ...]:
    """Return the commands that install, test and show the new repository in ``folder``.

    None of them needs an activated environment, which would hide the command capsmith itself.
    """
    here = str(folder) == "."
    # A folder such as -x would be an option of cd.
    named = f"./{folder}" if str(folder).startswith("-") else str(folder)
    enter = "" if here else f"cd {shlex.quote(named)} && "
    return (
        f"{enter}python3 -m venv .venv",
        "make install test",
        "capsmith lab demo",
    )
