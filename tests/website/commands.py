"""The commands in a text, and whether they exist; only `kubectl --help` is run."""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from capsmith.cli import main
from tests.golden.expected import expected_folder
from tests.website.blocks import Block
from tests.website.pages import ROOT

KUBECTL = Path(sys.executable).parent / "kubectl"
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_NESTED = re.compile(r"\$\(([^()]+)\)")
_SEPARATORS = re.compile(r"[|&;()<>]+")
_TARGET = re.compile(r"^([a-z][a-z0-9-]*):", re.MULTILINE)
_TASKS = re.compile(r"^#: ([a-z0-9]+) ", re.MULTILINE)
_OTHERS = {
    ".",
    "apt-get",
    "cd",
    "clusterctl",
    "cp",
    "curl",
    "export",
    "gh",
    "git",
    "grep",
    "pip",
    "python3",
}
"""Programs whose arguments are not checked here; tests/e2e has clusterctl."""


class UnknownCommandError(AssertionError):
    """Raised for a command, an option or a target that does not exist."""


def commands(block: Block) -> list[list[str]]:
    """Return the commands of a block, those of pipes and substitutions too, without output."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [command for line in lines for command in split(line)]


def split(line: str) -> Iterator[list[str]]:
    """Return the commands of one line of shell, without assignments and redirections."""
    for nested in _NESTED.findall(line):
        yield from split(nested)
    lexer = shlex.shlex(_NESTED.sub("NESTED", line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    command: list[str] = []
    is_file = False
    for token in [*lexer, ";"]:
        if not _SEPARATORS.fullmatch(token):
            if not is_file and (command or not _ASSIGNMENT.fullmatch(token)):
                command.append(token)
            is_file = False
        elif set(token) & set("<>"):
            is_file = True
        elif command:
            yield command
            command = []


def check(command: list[str], repository: str) -> None:
    """Raise UnknownCommandError if the command names what does not exist.

    ``repository`` says whose Makefile `make` reads: that of an example, or, if empty, this one's.
    """
    program, *arguments = command
    if program == "capsmith":
        check_capsmith(command, complete=True)
    elif program == "make":
        check_make(arguments, repository)
    elif program == "./dev":
        _require(arguments[0] in tasks(), command)
    elif program == "kubectl":
        check_help(str(KUBECTL), arguments)
    elif program.startswith(".venv/bin/"):
        _require((KUBECTL.parent / Path(program).name).exists(), command)
    else:
        _require(program in _OTHERS, command)


def check_capsmith(command: list[str], *, complete: bool) -> None:
    """Parse the arguments as click would; ``complete`` ones have all that are required."""
    found: click.Command = main
    rest = command[1:]
    while isinstance(found, click.Group) and rest and not rest[0].startswith("-"):
        name, *rest = rest
        _require(name in found.commands, command)
        found = found.commands[name]
    context = click.Context(found, info_name=found.name)
    try:
        values, left, _ = found.make_parser(context).parse_args(list(rest))
        for parameter in found.params:
            value = values.get(parameter.name or "", ())
            if isinstance(parameter.type, click.Choice) and isinstance(value, str):
                parameter.type.convert(value, parameter, context)
            missing = parameter.required and parameter.value_is_missing(value)
            _require(not (complete and missing), command)
    except click.UsageError as error:
        is_incomplete = isinstance(error, click.BadOptionUsage) and rest[-1] == error.option_name
        if is_incomplete and not complete:
            return
        raise UnknownCommandError(f"{shlex.join(command)}: {error.format_message()}") from error
    _require(not left, command)


def check_make(arguments: list[str], repository: str) -> None:
    """Check that the Makefile has the targets; arguments may also set variables."""
    known = targets(repository) if repository else {*tasks(), "TASK"}
    for argument in arguments:
        _require(bool(_ASSIGNMENT.fullmatch(argument)) or argument in known, ["make", *arguments])


def check_help(program: str, arguments: list[str]) -> None:
    """Let the program parse its flags, as kubectl and clusterctl do before they print help."""
    # What follows is another program's, in a container.
    arguments = arguments[: arguments.index("--")] if "--" in arguments else arguments
    code, output = _help(program, *arguments)
    # An unknown subcommand shows the help of its parent.
    usages = [f"{Path(program).name} {each}" for each in arguments if not each.startswith("-")]
    is_known = code == 0 and any(usage in output for usage in usages)
    _require(is_known, [program, *arguments], output[:300])


@functools.cache
def _help(*command: str) -> tuple[int, str]:
    done = subprocess.run([*command, "--help"], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@functools.cache
def targets(repository: str) -> frozenset[str]:
    """Return the targets of the Makefile that an example gets."""
    makefile = expected_folder(repository) / "Makefile"
    return frozenset(_TARGET.findall(makefile.read_text(encoding="utf-8")))


@functools.cache
def tasks() -> frozenset[str]:
    """Return the tasks of ./dev."""
    return frozenset(_TASKS.findall((ROOT / "dev").read_text(encoding="utf-8"))) | {"help"}


def _require(condition: bool, command: list[str], reason: str = "no such thing") -> None:
    if not condition:
        raise UnknownCommandError(f"{shlex.join(command)}: {reason}")
