"""``python -m benchmarks.generate``: capsmith beside copier and cookiecutter, in one run.

Figures are ratios of medians of whole processes; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.extension import CONTEXTS
from benchmarks.peers import Tree, copy_tree, make_tree, write_cookiecutter, write_copier
from benchmarks.timing import Command, Times, by_turns, steps, table
from capsmith.commands.load import load

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "examples" / "acme" / "provider.yaml"
PEER_SHARE = 0.5
"""At most this part of the faster peer's time, which formats nothing; capsmith's Python is."""
COPY_SHARE = 0.7
"""At most this part of cookiecutter's time when it only copies files that were rendered before."""
PEERS = ("cookiecutter", "copier")
HELP_RATIO = 1.25
"""``capsmith --help`` against Python importing click, in processor time."""
HELP_ROUNDS = 6
"""So many times the rounds of other commands: a start takes a tenth of their time."""
KINDS = (2, 50, 100, 200)
KIND_SPREAD = 1.5
"""The cost of an additional kind, the most expensive step against the cheapest."""


def environment(scratch: Path) -> dict[str, str]:
    tools = str(Path(sys.executable).parent)
    return {
        "PATH": os.pathsep.join([tools, os.environ.get("PATH", os.defpath)]),
        "HOME": str(scratch),
        "CAPSMITH_CACHE": str(scratch / "cache"),
        CONTEXTS: str(scratch / "contexts"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)]),
        # As after an installation: modules are compiled once, not in every run.
        "PYTHONPYCACHEPREFIX": str(scratch / "compiled"),
    }


def _into_new(name: str, folder: Path, arguments: Sequence[str], scratch: Path) -> Command:
    """A run of the module that ``name`` begins with; ``folder`` does not exist before it."""
    return Command(
        name=name,
        arguments=[sys.executable, "-m", name.partition(" ")[0], *arguments],
        environment=environment(scratch),
        cwd=scratch,
        prepare=lambda: shutil.rmtree(folder, ignore_errors=True),
    )


def _into_new_from(name: str, text: str, folder: Path, scratch: Path) -> Command:
    """A run of capsmith on a provider.yaml that differs from all earlier ones, by a comment."""
    spec = scratch / f"{folder.name}.yaml"
    numbers = itertools.count()

    def prepare() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        spec.write_text(f"{text}# {next(numbers)}\n", encoding="utf-8")

    command = _into_new(name, folder, ["generate", str(spec), "-o", str(folder)], scratch)
    return replace(command, prepare=prepare)


def peers(scratch: Path, rounds: int) -> bool:
    """The same repository from the same blueprints: capsmith, cookiecutter, copier."""
    provider = load(SPEC).provider
    assert provider is not None
    tree = make_tree(provider, scratch / "contexts")
    commands, folders = [], {}
    for name in ("capsmith", *PEERS, *(f"{peer} + black" for peer in PEERS)):
        folders[name] = scratch / "out" / name.replace(" ", "")
        if name == "capsmith":
            text = SPEC.read_text(encoding="utf-8")
            commands.append(_into_new_from(name, text, folders[name], scratch))
            continue
        arguments = _arguments(name, tree, scratch / "template" / name, folders[name])
        commands.append(_into_new(name, folders[name], arguments, scratch))
    times = by_turns(commands, rounds)
    _same_files(tree, folders)
    plain = min(times[name].median for name in PEERS)
    formatted = min(times[f"{name} + black"].median for name in PEERS)
    table(
        [
            ["whole process", "time against the faster peer", "against the faster one with black"],
            *(
                [name, f"{time.median / plain:.2f}", f"{time.median / formatted:.2f}"]
                for name, time in times.items()
            ),
        ]
    )
    return times["capsmith"].median <= PEER_SHARE * plain


def copies(scratch: Path, rounds: int) -> bool:
    """The same repository again and again.

    The peers' templates hold no logic, and capsmith has recorded what it generated: all only copy.
    """
    provider = load(SPEC).provider
    assert provider is not None
    folders = {name: scratch / "out" / name for name in ("capsmith", *PEERS)}
    generate = _into_new(
        "capsmith",
        folders["capsmith"],
        ["generate", str(SPEC), "-o", str(folders["capsmith"])],
        scratch,
    )
    by_turns([generate], 1)
    tree = copy_tree(make_tree(provider, scratch / "contexts"), folders["capsmith"])
    commands = [generate]
    for name in PEERS:
        arguments = _arguments(name, tree, scratch / "template" / name, folders[name])
        commands.append(_into_new(name, folders[name], arguments, scratch))
    times = by_turns(commands, rounds)
    _same_files(tree, folders)
    base = times["cookiecutter"].median
    rows = [[name, f"{time.median / base:.2f}"] for name, time in times.items()]
    table([["whole process, peers only copy", "time against cookiecutter"], *rows])
    return times["capsmith"].median <= COPY_SHARE * base


def _arguments(name: str, tree: Tree, template: Path, folder: Path) -> list[str]:
    formatted = name.endswith("black")
    if name.startswith("cookiecutter"):
        write_cookiecutter(tree, template, formatted=formatted)
        return [str(template), "--no-input", "--default-config", "-o", str(folder)]
    write_copier(tree, template, formatted=formatted)
    return ["copy", "--quiet", "--defaults", "--trust", str(template), str(folder)]


def _same_files(tree: Tree, folders: dict[str, Path]) -> None:
    """Every tool wrote every file, and those that format wrote the same bytes."""
    for name, folder in folders.items():
        base = folder / "repository" if name.startswith("cookiecutter") else folder
        for template in tree.files:
            text = (base / template.path).read_text(encoding="utf-8")
            mine = (folders["capsmith"] / template.path).read_text(encoding="utf-8")
            exact = name.endswith("black") or not template.path.endswith(".py")
            assert text.split() == mine.split() or not exact, f"{name}: {template.path}"


def start_up(scratch: Path, rounds: int) -> bool:
    """What ``--help`` costs beyond Python and click, in processor time."""
    around = environment(scratch)
    python = sys.executable
    script = str(Path(python).parent / "capsmith")
    base, helps = "python -c 'import click'", ("python -m capsmith --help", "capsmith --help")
    commands = [
        Command(base, [python, "-c", "import click"], around, scratch),
        Command(helps[0], [python, "-m", "capsmith", "--help"], around, scratch),
        Command(helps[1], [script, "--help"], around, scratch),
    ]
    times = by_turns(commands, rounds * HELP_ROUNDS)
    medians = {
        name: time.median_processor / times[base].median_processor for name, time in times.items()
    }
    leasts = {
        name: time.least_processor / times[base].least_processor for name, time in times.items()
    }
    table(
        [
            ["start-up: processor time", "medians", "least"],
            *([name, f"{medians[name]:.2f}", f"{leasts[name]:.2f}"] for name in times),
        ]
    )
    return max(medians[name] for name in helps) <= HELP_RATIO


def kinds(scratch: Path, rounds: int) -> bool:
    """Decide whether the cost of an additional kind stays the same from few kinds to many."""
    times: list[Times] = []
    for count in KINDS:
        name, folder = f"capsmith {count}", scratch / "out" / f"kinds-{count}"
        command = _into_new_from(name, spec_with(count), folder, scratch)
        times.append(by_turns([command], rounds)[name])
    medians = [time.median_processor for time in times]
    spread = steps(KINDS, medians)
    rows = [
        ["kinds", "processor time against 2 kinds", "each additional kind, against the first step"]
    ]
    rows.append([str(KINDS[0]), "1.00", ""])
    rows += [
        [str(count), f"{median / medians[0]:.2f}", f"{step / spread[0]:.2f}"]
        for count, median, step in zip(KINDS[1:], medians[1:], spread, strict=True)
    ]
    table(rows)
    correlation = statistics.correlation(KINDS, medians)
    sys.stdout.write(f"linear fit: R^2 = {correlation**2:.4f}\n\n")
    return max(spread) <= KIND_SPREAD * min(spread)


def spec_with(count: int) -> str:
    """The example with ``count`` kinds: one cluster, the others machines."""
    head, _, machine = SPEC.read_text(encoding="utf-8").partition("  AcmeMachine:\n")
    body, _, tail = machine.partition("credentials:")
    machines = "".join(f"  AcmeMachine{number}:\n{body}" for number in range(count - 1))
    return f"{head}{machines}credentials:{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each command")
    parser.add_argument("--only", choices=["peers", "copies", "start-up", "kinds"], action="append")
    options = parser.parse_args()
    parts = {"peers": peers, "copies": copies, "start-up": start_up, "kinds": kinds}
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, part in parts.items():
            scratch = Path(folder) / name
            scratch.mkdir()
            rounds = max(3, options.rounds // 3) if name == "kinds" else options.rounds
            if name in (options.only or parts) and not part(scratch, rounds):
                missed.append(name)
    sys.stdout.write(f"targets missed: {', '.join(missed)}\n" if missed else "targets met\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
