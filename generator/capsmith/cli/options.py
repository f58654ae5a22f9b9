"""Options shared by several commands, exit codes, and slow imports."""

from __future__ import annotations

import contextlib
import errno
import functools
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from capsmith.cli.group import report_unwritable

if TYPE_CHECKING:
    from pathlib import Path


class _PathType(click.Path):
    """Converts to pathlib paths; pathlib is imported for the first path, as `--help` needs none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        from pathlib import Path

        return Path(os.fsdecode(super().convert(value, param, ctx)))


FOLDER = _PathType(file_okay=True, dir_okay=True)

blueprints_option = click.option(
    "--blueprints",
    metavar="DIR",
    type=FOLDER,
    help="Replace capsmith's blueprints with those in DIR; provider.yaml can name DIR instead.",
)
no_blueprints_option = click.option(
    "--no-blueprints", is_flag=True, help="Ignore the blueprints used in the previous run."
)


PAGES = ("html", "markdown")
"""Formats that produce a page for human readers."""
_CREDENTIALS = frozenset({"env", "variables"})
_UNREPEATED = frozenset({"format_", "write_baseline"})


def format_command() -> str:
    """Return a command line that repeats the current command, without --format.

    The values of environment variables and of clusterctl's variables are omitted.  Absolute paths
    are made relative to the current folder.
    """
    import shlex

    context = click.get_current_context()
    words: list[str] = []
    arguments: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is not click.core.ParameterSource.COMMANDLINE or name in _UNREPEATED:
            continue
        value = context.params[name]
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(parameter, click.Argument):
            arguments += [_shorten_path(each) for each in values]
        elif value is True:
            words.append(parameter.opts[0])
        else:
            texts = [_hide_value(name, _shorten_path(each)) for each in values]
            words += [word for text in texts for word in (parameter.opts[0], text)]
    return shlex.join(["capsmith", context.command.name or "", *words, *arguments])


def _hide_value(option: str, text: str) -> str:
    """Return ``text`` without the value of an environment variable, which may be a credential."""
    return f"{text.partition('=')[0]}=..." if option in _CREDENTIALS else text


def _shorten_path(value: object) -> str:
    text = str(value)
    return os.path.relpath(text) if text.startswith("/") else text


def format_option(*formats: str) -> Callable[..., Any]:
    """Return a decorator that adds the option --format.

    The option accepts text, json and each of ``formats``.
    """
    return click.option(
        "--format",
        "format_",
        type=click.Choice(["text", "json", *formats]),
        default="text",
        show_default=True,
        help="Format of the report.",
    )


def _default_core() -> str:
    from capsmith.clusters.processes.tools.catalogue import default_core

    return default_core()


def core_option(help: str) -> Callable[..., Any]:
    """Return a decorator that adds the option --core, whose value is a release series of core."""
    return click.option(
        "--core",
        default=_default_core,
        show_default="the newest with which all tests are run",
        metavar="vX.Y",
        help=help,
    )


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Raise SystemExit on SIGTERM and SIGHUP, so that a run can stop what it has started.

    By default, Python would end without running any `with` or `finally` clean-up: processes of a
    lab or of `capsmith conformance` would keep running.  SIGINT raises KeyboardInterrupt, as usual.
    """
    received: list[int] = []

    def leave(number: int, _frame: object) -> None:
        received.append(number)
        _raise_for(number)

    handled = list[tuple[int, Any]]()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is None:
            continue
        usual = signal.getsignal(number)
        # A signal that is ignored, as under nohup, stays ignored.
        if usual in (signal.SIG_DFL, signal.default_int_handler):
            with contextlib.suppress(ValueError):  # in a thread, which cannot set handlers
                signal.signal(number, leave)
                handled.append((number, usual))
    try:
        yield
    except Exception as error:
        # pydantic, for one, turns what a handler raises in a callback into an error of its own.
        from capsmith.errors import CapsmithError

        if not received or isinstance(error, CapsmithError | OSError):
            raise
        _raise_for(received[-1])
    finally:
        for number, usual in handled:
            signal.signal(number, usual)


def _raise_for(number: int) -> NoReturn:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + number)


def handle_exit(function: Callable[..., int]) -> Callable[..., None]:
    """Return a function that runs a command and exits with its exit code.

    A CapsmithError is printed, and determines the exit code.
    """

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> None:
        from capsmith.console import Console
        from capsmith.errors import CapsmithError

        # A run is short and keeps most of its objects, so garbage collection would waste a sixth of
        # its time.  Frozen objects are not collected at interpreter exit either.
        gc.unfreeze()
        gc.disable()
        try:
            with _exit_on_signals():
                code = function(*args, **options)
        except CapsmithError as error:
            Console(options.get("format_", "text")).print_failure(error)
            code = error.exit_code
        except KeyboardInterrupt:
            click.echo(_interruption(options.get("folder")), err=True)
            code = 1
        except OSError as error:
            code = _report_disk_error(error, options.get("format_", "text"))
        finally:
            gc.freeze()
            gc.enable()
        sys.exit(code)

    return run


def _report_disk_error(error: OSError, format: str) -> int:
    """Print an error of a file operation, or of writing the output; return the exit code."""
    is_gone = error.filename is None and error.errno == errno.ENOENT
    # Writing to a stream has no file name.
    if error.filename is None and not is_gone:
        return report_unwritable(error)
    from pathlib import Path

    from capsmith.console import Console
    from capsmith.errors import DiskError
    from capsmith.workspace.hold import make_disk_error

    hint = "Free space or correct permissions, and run this again."
    failure = make_disk_error(error, Path(), hint)
    if is_gone:  # what os.getcwd raises
        hint = "Change to a folder that exists, and run this again."
        failure = DiskError("working-folder", "the current folder was removed", hint=hint)
    Console(format).print_failure(failure)
    return failure.exit_code


def _interruption(folder: Path | None) -> str:
    """Return a message about what an interrupted run leaves in ``folder``, and what to do."""
    from capsmith.errors import CapsmithError
    from capsmith.workspace.repository import Repository

    try:
        is_pending = folder is not None and Repository(folder).is_interrupted
    except (CapsmithError, OSError):
        is_pending = False
    if not is_pending:
        return "interrupted"
    return (
        "interrupted while writing files: run capsmith update --continue to complete the "
        "change, or --abort to undo it"
    )


def import_pydantic() -> None:
    """Import pydantic early, while the call stack is shallow.

    CPython keeps frames in chunks of 16 KiB, and maps or unmaps memory at every call that crosses
    the end of a chunk.  Importing pydantic makes thousands of calls from one depth.  Below a chain
    of other imports, that depth was at the end of a chunk, and the import took eight times as long.
    """
    # Otherwise pydantic would search the metadata of every installed distribution for plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import_module("pydantic.main")
