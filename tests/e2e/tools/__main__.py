"""`python -m tests.e2e.tools [MODULE ...]`: build the tools ahead of the tests."""

import sys

from capsmith.clusters.processes.errors import ToolsUnavailable
from capsmith.clusters.processes.tools import toolbox
from tests.e2e.tools.prometheus import build_promtool


def main() -> int:
    def progress(text: str) -> None:
        print(text, flush=True)

    try:
        box = toolbox(sys.argv[1:], progress)
        promtool = None if sys.argv[1:] else build_promtool(progress)
    except ToolsUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    for name, folder in box.folders.items():
        print(f"{name}: {folder}")
    if promtool is not None:
        print(f"promtool: {promtool.parent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
