"""The commands of the pages: those that can be run here are, and print what the pages show."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pytest

from capsmith.commands.generate import generate
from capsmith.judge.running.checks import INFRASTRUCTURE
from tests.website.blocks import Block
from tests.website.commands import UnknownCommandError, check, commands, split
from tests.website.pages import ROOT, Shown, declared
from tests.website.script import environment

_VOLATILE = (r"\b0\.\d+\.\d+\b", r"\b\d+(?= (?:files?|generated|merged|scaffold|advice)\b)")
"""Versions of capsmith, and numbers of files that it generates."""
_LEFT_OUT = "[…]\n"
_PARSED = [*declared("parse"), *declared("lab")]


class Step(NamedTuple):
    """One command of a block, and what the page shows of its output."""

    command: str
    output: str


class Ended(NamedTuple):
    code: int
    output: str


def steps(block: Block) -> list[Step]:
    """Return the commands of a console block, each with the lines up to the next."""
    found: list[Step] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Step(line.removeprefix("$ "), ""))
        else:
            command, output = found[-1]
            found[-1] = Step(command, f"{output}{line}\n")
    return found


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the generated repositories of the examples in which blocks are run."""
    names = {shown.entry["run"]["in"] for shown in declared("run") if "in" in shown.entry["run"]}
    folder = tmp_path_factory.mktemp("examples")
    for name in names:
        spec = ROOT / "examples" / name / "provider.yaml"
        assert generate(spec, folder / name).exit_code == 0
    return {name: folder / name for name in names}


def run(found: list[Step], folder: Path, **variables: str) -> list[Ended]:
    """Run commands one after the other in a folder."""
    given = environment(folder.parent, ROOT=str(ROOT), HOME=str(folder.parent), **variables)
    ended = []
    for step in found:
        argv = ["sh", "-c", f"exec 2>&1\n{step.command}"]
        done = subprocess.run(
            argv, cwd=folder, env=given, capture_output=True, text=True, timeout=120
        )
        ended.append(Ended(done.returncode, done.stdout))
    return ended


def without_volatile(text: str, expressions: list[str]) -> str:
    """Return the text with an ellipsis in place of what differs between runs."""
    for expression in (*_VOLATILE, *expressions):
        text = re.sub(expression, "…", text)
    return text.strip()


@pytest.mark.parametrize("shown", declared("run"), ids=str)
def test_commands_that_are_run(shown: Shown, examples: dict[str, Path], tmp_path: Path) -> None:
    options = shown.entry["run"]
    folder = tmp_path / "repository"
    if "in" in options:
        shutil.copytree(examples[options["in"]], folder)
    else:
        folder.mkdir()
    found = steps(shown.block)
    setup = Step("set -e\n" + options.get("setup", ""), "")

    prepared, *ended = run([setup, *found], folder)

    assert prepared.code == 0, prepared.output
    codes = zip_longest(ended, options.get("exit", []), fillvalue=0)
    for step, (done, code) in zip(found, codes, strict=True):
        assert isinstance(done, Ended)
        assert done.code == code, f"{step.command}\n{done.output}"
        if step.output:
            volatile = options.get("volatile", [])
            expected = re.escape(without_volatile(step.output, volatile))
            output = without_volatile(done.output, volatile)
            # Where a page leaves lines out, the rest is compared.
            expected = expected.replace(re.escape(_LEFT_OUT), r"(?:.*\n)+")
            assert re.fullmatch(expected, output), f"{step.output}\n--- printed ---\n{done.output}"


@pytest.mark.parametrize("shown", _PARSED, ids=str)
def test_commands_that_are_not_run_exist(shown: Shown) -> None:
    found = commands(shown.block)
    assert found
    for command in found:
        check(command, shown.page.example)


@pytest.mark.parametrize(
    "shown", [shown for shown in declared("parse") if "report" in shown.entry], ids=str
)
def test_checks_of_a_shown_report(shown: Shown) -> None:
    known = {check.name: check for check in INFRASTRUCTURE}
    lines = re.findall(r"^\w+: ([\w-]+) \((.*?)\): (.*)$", shown.block.text, re.MULTILINE)
    assert len(lines) >= 2
    for name, rules, title in lines:
        assert (rules.split(", "), title) == (list(known[name].rules), known[name].title)


def test_splitting() -> None:
    line = 'A=1 kubectl get x | grep y > out && export K="$(capsmith lab kubeconfig)" & cd z'
    assert list(split(line)) == [
        ["capsmith", "lab", "kubeconfig"],
        ["kubectl", "get", "x"],
        ["grep", "y"],
        ["export", "K=NESTED"],
        ["cd", "z"],
    ]


@pytest.mark.parametrize(
    "command",
    [
        "capsmith nonsense",
        "capsmith lab nonsense",
        "capsmith update --nonsense",
        "capsmith verify out --format nonsense",
        "capsmith verify",
        "capsmith explain IM-05 IM-06",
        "make nonsense",
        "./dev nonsense",
        "kubectl nonsense",
        "kubectl get pods --nonsense",
        "nonsense",
    ],
)
def test_what_does_not_exist_is_found(command: str) -> None:
    with pytest.raises(UnknownCommandError):
        check(command.split(), "acme")
