"""What the commands share: how to report, and how a run ends."""

from __future__ import annotations

import errno
import functools
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FOLDER = click.Path(file_okay=True, dir_okay=True, path_type=Path)

blueprints_option = click.option(
    "--blueprints",
    metavar="DIR",
    type=FOLDER,
    help="Lay these blueprints over capsmith's; provider.yaml may name them instead.",
)
no_blueprints_option = click.option(
    "--no-blueprints", is_flag=True, help="Go on without those that were named the last time."
)


def format_option(*formats: str) -> Callable[..., Any]:
    """The option --format: text, json, and ``formats``."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json", *formats]),
        default="text",
        show_default=True,
        help="How to report.",
    )


def command(function: Callable[..., int]) -> Callable[..., None]:
    """Turn the exit code that a command returns, and errors that stop it, into an exit."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        from capsmith.console import Console
        from capsmith.errors import CapsmithError

        gc.disable()  # a run is short and keeps what it makes: collecting is a tenth of its time
        try:
            code = function(*args, **options)
        except CapsmithError as error:
            Console(options.get("format_", "text")).failure(error)
            code = error.exit_code
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click's to end quietly
            click.echo(f"the report cannot be written: {error.strerror or error}", err=True)
            code = 2
        finally:
            gc.enable()
        sys.exit(code)

    return run
