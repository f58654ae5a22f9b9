"""``python -m benchmarks.generate``: capsmith beside copier and cookiecutter, in one run.

Figures are ratios of medians of whole processes; see README.md in this folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import templates, write_cookiecutter, write_copier
from benchmarks.timing import Command, Times, by_turns, table
from capsmith import pipeline

ROOT = Path(__file__).parent.parent
SPEC = ROOT / "examples" / "acme" / "provider.yaml"
PEER_SHARE = 0.5
"""At most this part of the faster peer's time, with formatting against theirs without."""
HELP_RATIO = 1.5
"""``capsmith --help`` against Python importing click."""
KINDS = (2, 50, 100, 200)
KIND_SPREAD = 1.5
"""The cost of one kind more, dearest against cheapest step."""


def _environment(scratch: Path) -> dict[str, str]:
    return {
        **os.environ,
        "HOME": str(scratch),
        "CAPSMITH_CACHE": str(scratch / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)]),
    }


def _into_new(command: str, folder: Path, arguments: Sequence[str], scratch: Path) -> Command:
    return Command(
        name=command,
        arguments=[sys.executable, "-m", *arguments],
        environment=_environment(scratch),
        cwd=scratch,
        prepare=lambda: shutil.rmtree(folder, ignore_errors=True),
    )


def peers(scratch: Path, rounds: int) -> bool:
    """The same repository from the same blueprints: capsmith, cookiecutter, copier."""
    provider = pipeline.load(SPEC).provider
    assert provider is not None
    made = templates(provider)
    write_cookiecutter(made, scratch / "cookiecutter")
    data = write_copier(made, scratch / "copier")
    out = {name: scratch / "out" / name for name in ("capsmith", "cookiecutter", "copier")}
    capsmith = ["capsmith", "generate", str(SPEC), "-o", str(out["capsmith"])]
    baker = ["cookiecutter", str(scratch / "cookiecutter"), "--no-input", "--default-config"]
    copier = ["copier", "copy", "--quiet", "--defaults", "--data-file", str(data)]
    commands = [
        _into_new("capsmith", out["capsmith"], capsmith, scratch),
        _into_new(
            "cookiecutter",
            out["cookiecutter"],
            [*baker, "-o", str(out["cookiecutter"])],
            scratch,
        ),
        _into_new(
            "copier",
            out["copier"],
            [*copier, str(scratch / "copier" / "template"), str(out["copier"])],
            scratch,
        ),
    ]
    times = by_turns(commands, rounds)
    _same_files([t.path for t in made], out)
    fastest = min(times["cookiecutter"].median, times["copier"].median)
    rows = [["one provider, whole process", "share of the faster peer"]]
    rows += [[name, f"{time.median / fastest:.2f}"] for name, time in times.items()]
    table(rows)
    return times["capsmith"].median <= PEER_SHARE * fastest


def _same_files(paths: Sequence[str], out: dict[str, Path]) -> None:
    for name, folder in out.items():
        base = folder / "repository" if name == "cookiecutter" else folder
        missing = [path for path in paths if not (base / path).is_file()]
        assert not missing, f"{name} did not write {missing}"


def start_up(scratch: Path, rounds: int) -> bool:
    """What ``--help`` costs beyond Python and click."""
    environment = _environment(scratch)
    python = sys.executable
    commands = [
        Command("import click", [python, "-c", "import click"], environment, scratch),
        Command("capsmith --help", [python, "-m", "capsmith", "--help"], environment, scratch),
    ]
    times = by_turns(commands, rounds)
    ratio = times["capsmith --help"].median / times["import click"].median
    table([["start-up", "ratio"], ["capsmith --help / python -c 'import click'", f"{ratio:.2f}"]])
    return ratio <= HELP_RATIO


def kinds(scratch: Path, rounds: int) -> bool:
    """Whether the cost of one kind more stays the same from few kinds to many."""
    times: list[Times] = []
    for count in KINDS:
        spec, folder = scratch / f"kinds-{count}.yaml", scratch / "out" / f"kinds-{count}"
        spec.write_text(_spec_with(count), encoding="utf-8")
        command = ["capsmith", "generate", str(spec), "-o", str(folder)]
        name = str(count)
        times.append(by_turns([_into_new(name, folder, command, scratch)], rounds)[name])
    medians = [time.median for time in times]
    steps = [
        (after - before) / (more - few)
        for before, after, few, more in zip(medians, medians[1:], KINDS, KINDS[1:], strict=False)
    ]
    rows = [["kinds", "time against 2 kinds", "one kind more, against the first step"]]
    rows.append([str(KINDS[0]), "1.00", ""])
    rows += [
        [str(count), f"{median / medians[0]:.2f}", f"{step / steps[0]:.2f}"]
        for count, median, step in zip(KINDS[1:], medians[1:], steps, strict=True)
    ]
    table(rows)
    correlation = statistics.correlation(KINDS, medians)
    sys.stdout.write(f"linear fit: R^2 = {correlation**2:.4f}\n\n")
    return max(steps) <= KIND_SPREAD * min(steps)


def _spec_with(count: int) -> str:
    """The example with ``count`` kinds: one cluster, the others machines."""
    head, _, machine = SPEC.read_text(encoding="utf-8").partition("  AcmeMachine:\n")
    body, _, tail = machine.partition("credentials:")
    machines = "".join(f"  AcmeMachine{number}:\n{body}" for number in range(count - 1))
    return f"{head}{machines}credentials:{tail}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="timed runs of each command")
    parser.add_argument("--only", choices=["peers", "start-up", "kinds"], action="append")
    options = parser.parse_args()
    parts = {"peers": peers, "start-up": start_up, "kinds": kinds}
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
