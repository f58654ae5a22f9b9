"""The names in a piece of inline code, and which of them do not exist."""

from __future__ import annotations

import fnmatch
import importlib.util
import re
import shlex
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from capsmith.cli import main
from tests.website import names
from tests.website.commands import (
    KUBECTL,
    UnknownCommandError,
    check_capsmith,
    check_help,
    check_make,
    split,
    tasks,
)
from tests.website.pages import Page

Kind = Callable[[str, Page], Iterator[str]]
_PLACE = re.compile(r"(?!\d|\.\./|ghcr\.io|[a-z]+/(?:status|finalizers)$)(?:[\w.<>-]+/)+[\w.<>*-]*")
_LABEL = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+/[\w-]+")
_PLACEHOLDER = re.compile(r"<[\w|-]+>|__\w+__")
_DASHED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_OPTIONS = re.compile(r"--[a-z].*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:\(.*\))?")
_CASED = re.compile(r"[a-z]+[A-Z]|[A-Z][a-z]|\w_\w")
_KEY = re.compile(r"\{.*\}|[A-Za-z]+: .+|[A-Za-z]+:")
_ELLIPSIS = re.compile(r"…|\[\.\.\.\]")


def unknown(code: str, page: Page) -> list[str]:
    """Return what the code names and does not exist; code of no known form names nothing."""
    for form, find in _FORMS:
        if form(code):
            return list(find(code, page))
    return []


def _in_command(code: str, page: Page) -> Iterator[str]:
    # The brackets of a usage are around what is optional.
    text = re.sub(r"\[(.*?)\]", r"\1", code).replace("…", "")
    for program, *arguments in split(text):
        command = [program, *arguments]
        try:
            if program == "capsmith":
                check_capsmith(command, complete=False)
            elif program == "make" and arguments:
                check_make(arguments, page.example)
            elif program == "kubectl" and arguments:
                check_help(str(KUBECTL), arguments)
            elif program == "./dev" and arguments and arguments[0] not in {*tasks(), "TASK"}:
                yield arguments[0]
            elif command[:2] == ["python", "-m"]:
                yield from _in_module(arguments[1])
        except UnknownCommandError as error:
            yield str(error)


def _in_module(name: str) -> Iterator[str]:
    if name.partition(".")[0] in ("benchmarks", "tests") and not importlib.util.find_spec(name):
        yield name


def _in_subcommand(code: str, page: Page) -> Iterator[str]:
    yield from _in_command(f"capsmith {code}", page)


def _in_options(code: str, page: Page) -> Iterator[str]:
    known = names.options_on(page.text) | names.manager_flags()
    for word in shlex.split(code):
        option = word.partition("=")[0]
        if option.startswith("--") and option not in known:
            yield option


def _in_path(code: str, page: Page) -> Iterator[str]:
    # In any folder: that of a package, of a component, or of `./dev demo`.
    pattern = _PLACEHOLDER.sub("*", code.removeprefix("build/acme/"))
    if pattern not in names.endings() and not fnmatch.filter(names.endings(), pattern):
        yield code


def _in_label(code: str, page: Page) -> Iterator[str]:
    if not names.words() & set(re.findall(r"\w+", code.rpartition("/")[2])):
        yield code


def _in_dashed(code: str, page: Page) -> Iterator[str]:
    if code not in names.finding_ids() | names.dashed():
        yield code


def _in_mapping(code: str, page: Page) -> Iterator[str]:
    try:
        found = yaml.safe_load(_ELLIPSIS.sub("x", code))
    except yaml.YAMLError:
        return
    known = names.provider_keys() | names.features()
    # A provider of the examples has fields of its own.
    known |= names.words() if page.source.startswith("examples/") else frozenset()
    yield from (key for key in _keys(found) if key not in known)


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from _keys(each)


def _in_identifier(code: str, page: Page) -> Iterator[str]:
    for name in code.partition("(")[0].split("."):
        # Classes of an example's kind are generated with its name.
        kind = re.sub(r"(?:Spec|Status|Reconciler)$", "", name)
        if _CASED.search(name) and not {name, kind} & names.words():
            yield name


def _is_subcommand(code: str) -> bool:
    first, _, second = code.partition(" ")
    return first in main.commands and second.startswith(("--", "demo", "run", "up", "down"))


_FORMS: tuple[tuple[Callable[[str], object], Kind], ...] = (
    (re.compile(r"(?:capsmith|make|kubectl|\./dev|python -m|git)(?: |$)").match, _in_command),
    (_is_subcommand, _in_subcommand),
    (_OPTIONS.fullmatch, _in_options),
    (_LABEL.fullmatch, _in_label),
    (_PLACE.fullmatch, _in_path),
    (_DASHED.fullmatch, _in_dashed),
    (_KEY.fullmatch, _in_mapping),
    (_IDENTIFIER.fullmatch, _in_identifier),
)
"""The forms of code, the first that fits decides, and what finds unknown names in it."""
