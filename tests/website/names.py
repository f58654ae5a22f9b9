"""The names that exist, with which code in sentences and tables of the pages is compared."""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import re
from collections.abc import Iterator
from typing import Any

import click

from capsmith import resources
from capsmith.cli import main
from capsmith.contract.load import list_versions, load_all_rules, load_contract
from capsmith.provider.model import WORKLOAD_CLIENT
from capsmith.provider_yaml.jsonschema import build_provider_schema
from capsmith_runtime.migration.options import MIGRATION
from capsmith_runtime.options import parse
from capsmith_runtime.webhook.options import WEBHOOK
from tests.golden.cases import cases
from tests.website.pages import ROOT
from website.generated import generated_pages

_OPTION = re.compile(r"--[a-z][\w-]*")
_NAMED = re.compile(r"\b(?:capsmith )((?:lab )?[a-z]+)\b")
_FINDING = re.compile(r'^\| <a id="([\w-]+)"></a>', re.MULTILINE)
_NOT_EXPECTED = (
    ".capsmith/base/",
    "out/",
    "vendor/capsmith_runtime/",
    "vendor/capsmith_runtime.json",
)
"""What a generated repository has, and an expected tree leaves out."""
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DASHED = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)+")
_SOURCES = (
    "generator/capsmith/**/*.py",
    "generator/capsmith/**/*.yaml",
    "runtime/src/capsmith_runtime/**/*.py",
    "schemas/**/*.yaml",
    "blueprints/**/*.jinja",
    "blueprints/*.yaml",
    "examples/**/*.py",
    "examples/**/*.yaml",
    "tests/*.py",
    "tests/*/*.py",
    "tests/website/acme.yaml",
)


@functools.cache
def options_on(text: str) -> frozenset[str]:
    """Return the options of those commands of capsmith that a page names."""
    named = set(_NAMED.findall(text))
    commands = (command for path, command in _commands(main, "") if path in named)
    return frozenset(option for command in commands for option in options_of(command))


def options_of(command: click.Command) -> Iterator[str]:
    """Return the options of one command, the hidden ones too."""
    yield "--help"
    for parameter in command.params:
        yield from (each for each in parameter.opts if each.startswith("--"))


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


@functools.cache
def manager_flags() -> frozenset[str]:
    """Return the flags of managers: those of all, of webhooks and of migrations."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.suppress(SystemExit):
        parse(["--help"], ["infrastructure", "bootstrap"], [WEBHOOK, MIGRATION], "acme")
    return frozenset(_OPTION.findall(output.getvalue()))


@functools.cache
def rule_ids() -> frozenset[str]:
    """Return the ids of all rules."""
    return frozenset(load_all_rules(resources.schemas()))


@functools.cache
def features() -> frozenset[str]:
    """Return the names under `features` of kinds."""
    contracts = [load_contract(version, resources.schemas()) for version in list_versions()]
    shapes = [contract.types[role] for contract in contracts for role in contract.types]
    parts = (part for shape in shapes for part in (shape.spec, shape.status))
    fields = (field for part in parts for field in part.values())
    return frozenset(field.feature for field in fields) - {""} | {WORKLOAD_CLIENT}


@functools.cache
def finding_ids() -> frozenset[str]:
    """Return the ids of findings."""
    return frozenset(_FINDING.findall(generated_pages()["reference/findings.md"]))


@functools.cache
def provider_keys() -> frozenset[str]:
    """Return the keys of provider.yaml, at any place."""
    return frozenset(_keys(build_provider_schema()))


def _keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        properties = schema.get("properties")
        yield from properties if isinstance(properties, dict) else ()
        for value in schema.values():
            yield from _keys(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _keys(value)


@functools.cache
def words() -> frozenset[str]:
    """Return the words of code, data and generated files; those of pages are not among them."""
    modules = {path.rpartition("/")[2].partition(".")[0] for path in paths() if ".py" in path}
    return frozenset(word for text in _texts() for word in _WORD.findall(text)) | modules


@functools.cache
def dashed() -> frozenset[str]:
    """Return the words with dashes in the same files."""
    return frozenset(word for text in _texts() for word in _DASHED.findall(text))


@functools.cache
def _texts() -> tuple[str, ...]:
    own = (path for pattern in _SOURCES for path in ROOT.glob(pattern))
    trees = [case.expected for case in cases()]
    expected = (path for tree in trees for end in ("yaml", "py") for path in tree.rglob(f"*.{end}"))
    files = itertools.chain(own, expected)
    return tuple(path.read_text(encoding="utf-8") for path in files)


@functools.cache
def paths() -> frozenset[str]:
    """Return the paths of this repository's files and of generated ones, with their folders."""
    own = [path.relative_to(ROOT).as_posix() for path in _files()]
    expected = [case.expected for case in cases()]
    generated = [
        path.relative_to(folder).as_posix()
        for folder in expected
        for path in folder.rglob("*")
        if path.is_file()
    ]
    found = {*own, *generated, *_NOT_EXPECTED}
    parents = {part for path in found for part in _parents(path)}
    return frozenset(found | parents)


@functools.cache
def endings() -> frozenset[str]:
    """Return the paths, and each path without its first folders."""
    parts = (path.split("/") for path in paths())
    return frozenset("/".join(each[start:]) for each in parts for start in range(len(each)))


def _files() -> Iterator[Any]:
    for top in ("*", ".*", ".ci/*", ".github/**/*"):
        yield from (path for path in ROOT.glob(top) if path.is_file())
    for folder in ("blueprints", "docs", "examples", "generator", "requirements", "runtime",
                   "schemas", "tests", "website", "benchmarks"):  # fmt: skip
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file())


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path + "/"
        yield path
