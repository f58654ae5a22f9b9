"""`python -m tests.e2e.tools [MODULE ...]`: build the tools ahead of the tests."""

import sys

from capsmith.management.errors import ToolsUnavailable
from capsmith.management.tools import toolbox


def main() -> int:
    try:
        box = toolbox(sys.argv[1:], progress=lambda text: print(text, flush=True))
    except ToolsUnavailable as error:
        print(error, file=sys.stderr)
        return 1
    for name, folder in box.folders.items():
        print(f"{name}: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
