"""`./dev releases [modules | matrix PROJECT | newer]`, for schemas/compatibility.yaml.

`modules` writes the Go modules of the releases that are run; `matrix` prints the releases of a
project that are run as an output of a workflow; `newer` prints releases that the table lacks.
"""

from __future__ import annotations

import json
import sys

from capsmith.clusters.processes.tools.catalogue import load_releases
from tests.releases.modules import update_modules
from tests.releases.newer import find_newer

_USAGE = "usage: ./dev releases [modules | matrix PROJECT | newer]"


def main(arguments: list[str]) -> int:
    """Run a command; return the exit code."""
    match arguments:
        case [] | ["modules"]:
            print("\n".join([*update_modules()] or ["the modules pin the releases of the table"]))
        case ["matrix", "kubernetes" | "python" | "core" as project]:
            executed = getattr(load_releases(), project).executed
            print(f"{project}={json.dumps([each.series for each in executed])}")
        case ["newer"]:
            print("\n".join(find_newer(load_releases())))
        case _:
            print(_USAGE, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
