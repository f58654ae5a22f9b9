"""``python -m benchmarks.update``: what is there to update, asked of capsmith, copier and cruft.

Figures are ratios of medians of whole processes; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.generate import SPEC, environment, spec_with
from benchmarks.peers import Tree, make_tree, write_cookiecutter, write_copier
from benchmarks.timing import Command, by_turns, table
from capsmith.commands.load import load

KINDS = (2, 8, 32, 64, 128)
KIND_GROWTH = 1.5
"""What an additional kind may cost between the last two rows, against the first three."""
_ANSWERS = "{{ _copier_conf.answers_file }}.jinja"
_GIT = ("-c", "user.name=benchmark", "-c", "user.email=benchmark@example.com")


def peers(scratch: Path, rounds: int) -> bool:
    """The same tree, asked of each tool whether there is something to do; there is nothing."""
    provider = load(SPEC).provider
    assert provider is not None
    tree = make_tree(provider, scratch / "contexts")
    around = environment(scratch)
    folders = {
        "capsmith": _capsmith(scratch, around),
        "copier": _copier(tree, scratch, around),
        "cruft": _cruft(tree, scratch, around),
    }
    commands = [
        _command("capsmith update --check", folders["capsmith"], around),
        _command("copier update --pretend", folders["copier"], around, "--trust", "--defaults"),
        _command("cruft check", folders["cruft"], around),
        _command("cruft diff", folders["cruft"], around),
    ]
    fresh = {**around, "CAPSMITH_CACHE": str(scratch / "fresh")}
    whole = (
        Command(
            "capsmith update --dry-run", _capsmith_run("--dry-run"), around, folders["capsmith"]
        ),
        Command(
            "capsmith update --check, empty cache",
            _capsmith_run("--check"),
            fresh,
            folders["capsmith"],
            lambda: shutil.rmtree(scratch / "fresh", ignore_errors=True),
        ),
    )
    times = by_turns([*commands, *whole], rounds)
    own = times["capsmith update --check"]
    rows = [["nothing to do", "time against capsmith", "processor time against capsmith"]]
    for name, time in times.items():
        against = time.median_processor / own.median_processor
        rows.append([name, f"{time.median / own.median:.2f}", f"{against:.2f}"])
    table(rows)
    return all(time.median >= own.median for time in times.values())


def kinds(scratch: Path, rounds: int) -> bool:
    """Whether an additional kind costs the same among many kinds as among few."""
    around = environment(scratch)
    whole, remembered = [], []
    for count in KINDS:
        folder = scratch / f"kinds-{count}"
        folder.mkdir()
        (folder / "provider.yaml").write_text(spec_with(count), encoding="utf-8")
        _run([sys.executable, "-m", "capsmith", "generate", "provider.yaml"], folder, around)
        commands = [
            _command(f"capsmith update {option}", folder, around)
            for option in ("--dry-run", "--check")
        ]
        times = by_turns(commands, rounds)
        whole.append(times["capsmith update --dry-run"].least_processor)
        remembered.append(times["capsmith update --check"].least_processor)
    rows = [
        [
            "kinds",
            "--dry-run against 2 kinds",
            "each additional kind",
            "--check against --dry-run",
        ]
    ]
    for place, count in enumerate(KINDS):
        step = f"{_one_more(whole, 0, place) / whole[0]:.4f}" if place else ""
        share = f"{remembered[place] / whole[place]:.2f}"
        rows.append([str(count), f"{whole[place] / whole[0]:.2f}", step, share])
    table(rows)
    middle = len(KINDS) // 2
    return _one_more(whole, -2, -1) <= KIND_GROWTH * _one_more(whole, 0, middle)


def _one_more(costs: Sequence[float], first: int, last: int) -> float:
    """Return what an additional kind costs between two rows."""
    return (costs[last] - costs[first]) / (KINDS[last] - KINDS[first])


def _capsmith(scratch: Path, around: dict[str, str]) -> Path:
    folder = scratch / "capsmith"
    command = [sys.executable, "-m", "capsmith", "generate", str(SPEC), "-o", str(folder)]
    _run(command, scratch, around)
    _committed(folder, around)
    return folder


def _copier(tree: Tree, scratch: Path, around: dict[str, str]) -> Path:
    template, folder = scratch / "template" / "copier", scratch / "copier"
    write_copier(tree, template, formatted=False)
    (template / _ANSWERS).write_text("{{ _copier_answers | to_nice_yaml }}")
    _committed(template, around, tag="1.0.0")
    command = [sys.executable, "-m", "copier", "copy", "--quiet", "--defaults", "--trust"]
    _run([*command, str(template), str(folder)], scratch, around)
    _committed(folder, around)
    return folder


def _cruft(tree: Tree, scratch: Path, around: dict[str, str]) -> Path:
    template = scratch / "template" / "cruft"
    write_cookiecutter(tree, template, formatted=False)
    _committed(template, around)
    command = [sys.executable, "-m", "cruft", "create", "--no-input", "--output-dir"]
    _run([*command, str(scratch / "cruft"), str(template)], scratch, around)
    folder = scratch / "cruft" / "repository"
    assert json.loads((folder / ".cruft.json").read_text())["commit"]
    _committed(folder, around)
    return folder


def _committed(folder: Path, around: dict[str, str], tag: str = "") -> None:
    """Make a git repository of ``folder``: both peers require one."""
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "-m", "all"]):
        _run(["git", *_GIT, *arguments], folder, around)
    if tag:
        _run(["git", *_GIT, "tag", tag], folder, around)


def _command(name: str, folder: Path, around: dict[str, str], *options: str) -> Command:
    module, *arguments = name.split()
    return Command(name, [sys.executable, "-m", module, *arguments, *options], around, folder)


def _capsmith_run(option: str) -> list[str]:
    return [sys.executable, "-m", "capsmith", "update", option]


def _run(command: Sequence[str], folder: Path, around: dict[str, str]) -> None:
    subprocess.run(command, cwd=folder, env=around, check=True, stdout=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each command")
    parser.add_argument("--only", choices=["peers", "kinds"], action="append")
    options = parser.parse_args()
    parts = {"peers": peers, "kinds": kinds}
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for name, part in parts.items():
            scratch = Path(folder) / name
            scratch.mkdir()
            rounds = max(5, options.rounds // 2) if name == "kinds" else options.rounds
            if name in (options.only or parts) and not part(scratch, rounds):
                missed.append(name)
    sys.stdout.write(f"targets missed: {', '.join(missed)}\n" if missed else "targets met\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
