"""Interrupted runs: one process prepares, and forks once for each event to interrupt.

The interpreter announces each write, rename, removal and so on (audit events). The fork counts
these events, and at one of them it is killed, is killed with a half-written file, or receives a
disk error. In this way every event is tried. Only the rendering is replaced: it is done once.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from capsmith.commands import build as build_command
from capsmith.commands import generate as generate_command
from capsmith.commands import load
from capsmith.commands import update as update_command
from capsmith.commands import upgrade as upgrade_command
from capsmith.commands.plan import UpdateOptions
from capsmith.errors import CapsmithError
from capsmith.provider.model import Provider
from capsmith.provider_upgrade.request import UpgradeRequest
from capsmith.tree import FileTree
from tests.regenerate.conftest import ACME, tree
from tests.regenerate.faults import When, dies

Tree = Mapping[str, tuple[bytes, int]]
Action = Callable[[Path], object]

OLD = ACME.read_text()
NEW = (
    OLD.replace("size: string!", "size: string!\n      rack: string")
    .replace("credentials: AcmeIdentity", "description: Theirs")
    .replace("AcmeCluster", "AcmeSite")
)
PAST = OLD.replace("v1beta2", "v1beta1")
BOTH = UpgradeRequest(("v1beta1", "v1beta2"))
WORKFLOW = ".github/workflows/ci.yaml"
FEW = (
    *("pyproject", WORKFLOW, "Makefile", ".gitignore", "controllers/acme", "api/acme"),
    *("crd/kustomization", "acmeclusters.yaml", "acmemachines.yaml", "acmesites.yaml"),
)
"""Of the files of a provider, those whose path has one of these."""
OPTIONS = UpdateOptions(allow_dirty=True)
"""Git is not asked, as no folder here is in a work tree."""
TRANSIENT = (".capsmith/stage/", ".capsmith/pending.json")


def update(folder: Path) -> object:
    return update_command.update(folder, OPTIONS)


def upgrade(folder: Path) -> object:
    return upgrade_command.upgrade(folder, BOTH, OPTIONS)


def first(folder: Path) -> object:
    return generate_command.generate(folder.parent / "provider.yaml", folder)


@dataclass(frozen=True)
class Scenario:
    """An interrupted command, and the allowed states of the folder after each way to continue."""

    before: str
    action: Action
    after: str
    resumed: frozenset[str]
    aborted: frozenset[str]

    @property
    def ways(self) -> tuple[tuple[Action, frozenset[str]], ...]:
        again = frozenset({self.after})
        return (
            (self.action, again),
            (update_command.resume, self.resumed),
            (update_command.abort, self.aborted),
        )


def _scenario(before: str, action: Action, after: str, resumed: str, aborted: str) -> Scenario:
    return Scenario(before, action, after, frozenset(resumed.split()), frozenset(aborted.split()))


SCENARIOS = {
    "fresh": _scenario("absent", first, "generated", "absent generated", "absent generated"),
    "first": _scenario("empty", first, "generated", "empty generated", "empty generated"),
    "update": _scenario("edited", update, "updated", "edited updated", "edited updated"),
    "conflict": _scenario("clash", update, "marked", "clash marked", "clash"),
    "upgrade": _scenario("past", upgrade, "raised", "past raised", "past raised"),
    "stuck": _scenario("past-clash", upgrade, "stuck", "past-clash stuck", "past-clash"),
    "continue": _scenario(
        "resolved", update_command.resume, "concluded", "concluded", "clash concluded"
    ),
    "abort": _scenario("resolved", update_command.abort, "clash", "clash concluded", "clash"),
    "complete": _scenario("pending", update, "updated", "updated", "edited updated"),
    "undo": _scenario("pending", update_command.abort, "edited", "edited updated", "edited"),
}


def render_once() -> None:
    """Resolve and render the descriptions, and keep a few files of every owner from each."""
    loaded = {text: load.load_text(text, "provider.yaml") for text in (OLD, NEW, PAST)}
    raised = upgrade_command.apply_request(loaded[PAST], BOTH, "provider.yaml")
    loaded[raised.text] = raised
    trees = [
        (each.provider, _few(build_command.build(each.provider)))
        for each in loaded.values()
        if each.provider is not None
    ]
    assert len(trees) == len(loaded) == 4

    def build(provider: Provider, legacy_imports: bool = False) -> FileTree:
        return next(tree for known, tree in trees if known is provider)

    with_patches = pytest.MonkeyPatch()
    for module in (load, upgrade_command):
        with_patches.setattr(module, "load_text", lambda text, file: loaded[text])
    with_patches.setattr(build_command, "build", build)
    with_patches.setattr(build_command, "check_manifests", lambda tree, provider: ())


def _few(tree: FileTree) -> FileTree:
    return FileTree.of([file for file in tree if any(part in file.path for part in FEW)])


def make(state: str, folder: Path) -> None:
    """Create ``folder`` in a given state."""
    (folder.parent / "provider.yaml").write_text(OLD)
    match state:
        case "absent":
            return
        case "empty":
            folder.mkdir()
        case "generated":
            first(folder)
        case "past" | "past-clash":
            (folder.parent / "provider.yaml").write_text(PAST)
            first(folder)
            _edit(folder, PAST, "VERSION=" if state == "past-clash" else "", WORKFLOW)
        case "raised" | "stuck":
            make("past" if state == "raised" else "past-clash", folder)
            upgrade(folder)
        case "edited" | "clash":
            make("generated", folder)
            _edit(folder, NEW, "description" if state == "clash" else "")
        case "updated":
            make("edited", folder)
            update(folder)
        case "marked":
            make("clash", folder)
            update(folder)
        case "resolved":
            make("marked", folder)
            _resolve(folder)
        case "concluded":
            make("resolved", folder)
            update_command.resume(folder)
        case "pending":
            make("edited", folder)
            assert dies(lambda: update(folder), _in_the_middle(), "kill")


def _edit(folder: Path, spec: str, clash: str, shared: str = "pyproject.toml") -> None:
    """Edit as an author does.

    ``clash`` are words of a line of the file ``shared`` that an update changes too.
    """
    (folder / "notes").mkdir()
    (folder / "notes/mine.txt").write_text("mine\n")
    with (folder / "Makefile").open("a") as file:
        file.write("mine:\n")
    (folder / "provider.yaml").write_text(spec)
    if clash:
        project = folder / shared
        lines = project.read_text().splitlines(keepends=True)
        mine = [f"# mine: {each}" if clash in each else each for each in lines]
        project.write_text("".join(mine))


def _resolve(folder: Path) -> None:
    project = folder / "pyproject.toml"
    lines = project.read_text().splitlines(keepends=True)
    marks = ("<<<<<<<", "=======", ">>>>>>>")
    project.write_text("".join(line for line in lines if not line.startswith(marks)))


def _in_the_middle() -> When:
    moves = itertools.count()

    def when(number: int, event: str, path: str) -> bool:
        return event == "os.rename" and "/stage/new/" in path and next(moves) == 4

    return when


class Trial:
    """A scenario, tried at one event after another."""

    def __init__(self, scenario: Scenario, work: Path) -> None:
        self._scenario = scenario
        self._work = work
        self._trees: dict[str, Tree] = {}
        for state in {scenario.before, scenario.after} | scenario.resumed | scenario.aborted:
            make(state, self._at(state))
            self._trees[state] = contents(self._at(state))
        assert self._trees[scenario.before] != self._trees[scenario.after]

    def at(self, number: int, fault: str) -> bool:
        """Try a fault at an event; return whether there was an event with this number."""
        folder = self._at(f"try-{number}-{fault}")
        if self._at(self._scenario.before).exists():
            shutil.copytree(self._at(self._scenario.before), folder)
        (folder.parent / "provider.yaml").write_text(OLD)
        met = dies(lambda: self._scenario.action(folder), lambda count, *_: count == number, fault)
        self._judge(folder, f"{fault} at {number}")
        if not met:
            assert contents(folder) == self._trees[self._scenario.after]
        chance = random.Random(number)
        way, ends = self._scenario.ways[number % 3]
        if chance.random() < 0.3:  # it dies again on the way
            second = chance.randrange(1, 40)
            dies(lambda: _tried(way, folder), lambda count, *_: count == second, "kill")
            self._judge(folder, f"{fault} at {number}, killed at {second}")
        with contextlib.suppress(CapsmithError):
            way(folder)
        left = contents(folder)
        assert any(left == self._trees[end] for end in ends), (
            f"{fault} at {number}, then {getattr(way, '__name__', way)}: "
            f"{ {state: differing(left, known) for state, known in self._trees.items()} }"
        )
        if left == self._trees[self._scenario.after]:
            assert {path.name for path in folder.parent.iterdir()} == {"acme", "provider.yaml"}
        shutil.rmtree(folder.parent)
        return met

    def _judge(self, folder: Path, what: str) -> None:
        """It is one of the states, or there is a list from which the rest can be done."""
        now = contents(folder)
        settled = {path: state for path, state in now.items() if not path.startswith(TRANSIENT)}
        known = [
            {path: state for path, state in each.items() if not path.startswith(TRANSIENT)}
            for each in self._trees.values()
        ]
        if ".capsmith/pending.json" in now:
            parts = {path for each in known for path in each}
            for path in {*settled, *parts}:
                allowed = [each.get(path) for each in known]
                assert settled.get(path) in allowed, f"{what}: {path} is neither old nor new"
        else:
            assert settled in known, f"{what}: neither old nor new, and nothing is pending"

    def _at(self, name: str) -> Path:
        parent = self._work / name
        parent.mkdir(exist_ok=True)
        return parent / "acme"


def _tried(way: Action, folder: Path) -> None:
    with contextlib.suppress(CapsmithError):
        way(folder)


def contents(folder: Path) -> Tree:
    return tree(folder) if folder.is_dir() else {"absent": (b"", 0)}


def differing(one: Tree, other: Tree) -> list[str]:
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))[:6]


def count_points(name: str, fault: str, step: int) -> int:
    """Try a scenario at every `step`-th event, and return the number of events tried.

    Raises AssertionError with the first event after which the folder is in no allowed state.
    """
    memory = Path("/dev/shm")  # where there is one: it is about the order of events, not the disk
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as work:
        trial = Trial(SCENARIOS[name], Path(work))
        points = 0
        while trial.at(points * step + 1, fault):
            points += 1
    return points


def main() -> None:
    """Render once; then try the scenario that each line of the input names, with fault and step.

    Each scenario runs in a fork, which has the trees and imports of this process.  The answer is
    one line of JSON.
    """
    render_once()
    for line in sys.stdin:
        name, fault, step = line.split()
        child = os.fork()
        if not child:
            os._exit(_answer(name, fault, int(step)))
        os.waitpid(child, 0)


def _answer(name: str, fault: str, step: int) -> int:
    try:
        answer: dict[str, object] = {"points": count_points(name, fault, step)}
    except Exception:
        answer = {"failure": traceback.format_exc()}
    print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    main()
