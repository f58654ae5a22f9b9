"""Makes the static runtime blueprints importable, as `capsmith_runtime`.

`python -m tests.runtime.assembled FOLDER` puts them where a type checker finds them.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from pathlib import Path

PACKAGE = "capsmith_runtime"
_BLUEPRINTS = Path(__file__).parents[2] / "blueprints/project/src/__package__/_generated/runtime"


def assemble(folder: Path) -> None:
    """Copy the runtime below `folder`, suffixes stripped."""
    package = folder / PACKAGE
    package.mkdir(parents=True)
    for source in sorted(_BLUEPRINTS.glob("*.jinja")):
        text = source.read_text(encoding="utf-8")
        assert not any(mark in text for mark in ("{{", "{%")), f"{source.name} is not static"
        (package / source.name.removesuffix(".jinja")).write_text(text, encoding="utf-8")
    (package / "py.typed").touch()


def importable() -> Path:
    """Put the assembled runtime on sys.path until the process ends; returns that folder."""
    folder = Path(tempfile.mkdtemp(prefix="capsmith-runtime-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    assemble(folder)
    sys.path.insert(0, str(folder))
    return folder


if __name__ == "__main__":
    assemble(Path(sys.argv[1]))
