"""``python -m benchmarks.verify``: capsmith beside kubeconform and kubernetes-validate, in one run.

All of them read the same files, whose variables are replaced beforehand.  The peers are given by
options or found in PATH; one that is missing is left out.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.releases import copied, documents, generated, schemas
from benchmarks.timing import Command, by_turns, peak, table

ROOT = Path(__file__).parent.parent
PEERS = ("kubeconform", "kubernetes-validate")
RELEASES = 48
_ANY_VERDICT = ("sh", "-c", '"$@" >"$OUT" 2>&1 || test $? -eq 1', "sh")
"""Runs a command that exits with 1 when it has found something."""


def commands(releases: Sequence[Path], peers: Mapping[str, str], scratch: Path) -> list[Command]:
    """Return a command for each tool, all on the same files; reports go to files."""
    files = sorted(str(path) for folder in releases for path in folder.iterdir())
    lines = {"capsmith": [sys.executable, "-m", "capsmith", "verify", *map(str, releases)]}
    for peer, path in peers.items():
        options = _kubeconform(peers, scratch) if peer == "kubeconform" else []
        lines[peer] = [path, *options, *files]
    return [
        Command(
            name=tool,
            arguments=[*_ANY_VERDICT, *line],
            environment=_environment(scratch, scratch / f"{tool}.txt"),
            cwd=scratch,
        )
        for tool, line in lines.items()
    ]


def _kubeconform(peers: Mapping[str, str], scratch: Path) -> list[str]:
    """Return options for local schemas only: of the releases, and of kubernetes-validate."""
    name = "{{.ResourceKind}}{{.KindSuffix}}.json"
    folders = [scratch / "schemas"]
    if "kubernetes-validate" in peers:
        library = Path(peers["kubernetes-validate"]).resolve().parent.parent / "lib"
        folders += sorted(library.glob("*/site-packages/kubernetes_validate/*/v1.3?.0-local"))[-1:]
    locations = [f"-schema-location={folder}/{name}" for folder in folders]
    return ["-summary", "-ignore-missing-schemas", *locations]


def _environment(scratch: Path, report: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(scratch),
        "OUT": str(report),
        "CAPSMITH_CACHE": str(scratch / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "generator"), str(ROOT)]),
        "PYTHONPYCACHEPREFIX": str(scratch / "compiled"),
    }


def compare(releases: Sequence[Path], peers: Mapping[str, str], scratch: Path, rounds: int) -> bool:
    """Print the comparison; return whether capsmith is at least as fast as one of the peers."""
    schemas(releases, scratch / "schemas")
    count = sum(1 for _ in documents(releases))
    small = scratch / "small"
    small.mkdir()
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: small\n"
    (small / "infrastructure-components.yaml").write_text(namespace)
    starts = by_turns(commands([small], peers, scratch), rounds)
    whole = commands(releases, peers, scratch)
    times = by_turns(whole, rounds)
    own = times["capsmith"]
    rows = [
        [
            f"{len(releases)} releases, {count} documents",
            *("elapsed a document", "processor a document", "peak RSS", "start-up, processor"),
        ]
    ]
    memory = {command.name: peak(command) for command in whole}
    for tool, time in times.items():
        figures = (
            time.median / own.median,
            time.median_processor / own.median_processor,
            memory[tool] / memory["capsmith"],
            starts[tool].median_processor / starts["capsmith"].median_processor,
        )
        rows.append([tool, *(f"{figure:.2f}" for figure in figures)])
    table(rows)
    sys.stdout.write(
        f"capsmith: {1000 * own.median_processor / count:.1f} ms of processor time a document, "
        f"{memory['capsmith']:.0f} MiB\n"
    )
    others = [time.median_processor for tool, time in times.items() if tool in peers]
    return not others or own.median_processor <= max(others)


def main() -> int:
    """Print the comparison; exit with 1 if each peer is faster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="releases, one in each folder")
    parser.add_argument("--rounds", type=int, default=5, help="timed runs of each command")
    for peer in PEERS:
        parser.add_argument(f"--{peer}", default=shutil.which(peer), help="its executable")
    options = parser.parse_args()
    found = {peer: getattr(options, peer.replace("-", "_")) for peer in PEERS}
    peers = {peer: path for peer, path in found.items() if path}
    if not peers:
        sys.stderr.write(f"none of the peers is installed: {', '.join(PEERS)}\n")
        return 1
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        assets = scratch / "assets"
        folder = options.folder
        releases = copied(folder, assets) if folder else generated(assets, RELEASES)
        met = compare(releases, peers, scratch, options.rounds)
    sys.stdout.write("target met\n" if met else "target missed\n")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
