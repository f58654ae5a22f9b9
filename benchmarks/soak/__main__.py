"""``python -m benchmarks.soak load|faults|tenants``; see README.md in the folder above."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.soak import faults, load, tenants


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    many = commands.add_parser("load", help="thousands of machines, and the limits of their cost")
    many.add_argument("--pairs", type=int, default=5000, help="Machines, each with its own object")
    many.add_argument("--pool", type=int, default=1000, help="machines of a pool")
    many.add_argument("--clusters", type=int, default=1, help="that the Machines belong to")
    hostile = commands.add_parser("faults", help="faults at random moments, and what must hold")
    hostile.add_argument("--minutes", type=float, default=60.0, help="60 unless given")
    hostile.add_argument("--seed", type=int, default=1, help="of the order of faults")
    hostile.add_argument("--folder", type=Path, help="keep logs here; it must be empty")
    several = commands.add_parser("tenants", help="some tenants' clouds have faults")
    several.add_argument("--minutes", type=float, default=60.0, help="60 by default")
    several.add_argument("--folder", type=Path, help="keep logs here; it must be empty")
    for command in (many, hostile, several):
        command.add_argument("--format", choices=["text", "json"], default="text")
    options = parser.parse_args()
    if options.command == "faults":
        return faults.main(options.minutes, options.seed, options.format, options.folder)
    if options.command == "tenants":
        return tenants.main(options.minutes, options.format, options.folder)
    return load.main(options.pairs, options.pool, options.clusters, options.format)


if __name__ == "__main__":
    sys.exit(main())
