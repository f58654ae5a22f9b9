"""Options that several commands share, and the exit of a run."""

from __future__ import annotations

import errno
import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path


class _PathType(click.Path):
    """Paths of pathlib, which is imported only for the first path: `--help` does not need it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from pathlib import Path

        return Path(os.fsdecode(super().convert(value, param, ctx)))


FOLDER = _PathType(file_okay=True, dir_okay=True)

blueprints_option = click.option(
    "--blueprints",
    metavar="DIR",
    type=FOLDER,
    help="Replace capsmith's blueprints by those in DIR; provider.yaml may name DIR instead.",
)
no_blueprints_option = click.option(
    "--no-blueprints", is_flag=True, help="Ignore the blueprints used in the previous run."
)


def format_option(*formats: str) -> Callable[..., Any]:
    """Return the option --format: text, json, and ``formats``."""
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json", *formats]),
        default="text",
        show_default=True,
        help="Format of the report.",
    )


def command(function: Callable[..., int]) -> Callable[..., None]:
    """Exit with the code that a command returns, or with that of the error that stops it."""

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        from capsmith.console import Console
        from capsmith.errors import CapsmithError

        # A run is short and keeps its objects, and garbage collection would take a sixth of its
        # time.  Frozen objects are not collected when the interpreter exits either.
        gc.unfreeze()
        gc.disable()
        try:
            code = function(*args, **options)
        except CapsmithError as error:
            Console(options.get("format_", "text")).failure(error)
            code = error.exit_code
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # click exits quietly
            click.echo(f"the report cannot be written: {error.strerror or error}", err=True)
            code = 2
        finally:
            gc.freeze()
            gc.enable()
        sys.exit(code)

    return run
