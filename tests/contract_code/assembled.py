"""Makes the static blueprints below ``_generated`` importable, as ``capsmith_generated``."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

PACKAGE = "capsmith_generated"
BLUEPRINTS = Path(__file__).parents[2] / "blueprints/project/src/__package__/_generated"


@cache
def importable() -> Path:
    """Put the package on sys.path until the process ends; returns the folder that holds it."""
    folder = Path(tempfile.mkdtemp(prefix="capsmith-generated-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _assemble(folder)
    sys.path.insert(0, str(folder))
    return folder


def _assemble(folder: Path) -> None:
    package = folder / PACKAGE
    for source in BLUEPRINTS.rglob("*.py.jinja"):
        text = source.read_text()
        if "{{" not in text and "{%" not in text:
            target = package / source.relative_to(BLUEPRINTS).with_suffix("")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
