"""Generate the repository once cookiecutter has written provider.yaml."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path


def _command() -> list[str]:
    """Return the capsmith command in cookiecutter's environment, or else on PATH."""
    if find_spec("capsmith") is not None:
        return [sys.executable, "-m", "capsmith"]
    command = shutil.which("capsmith")
    if command is None:
        sys.exit(
            "capsmith is required, but it is not installed.  Install it beside "
            "cookiecutter (pip install . in a clone of its repository) and run the same "
            "command again."
        )
    return [command]


# With its absolute path, which the suggested commands then contain too.
sys.exit(subprocess.call([*_command(), "generate", str(Path.cwd() / "provider.yaml")]))
