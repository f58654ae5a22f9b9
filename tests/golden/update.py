"""``python -m tests.golden.update [CASE...]``: take what is generated now as expected.

A file is kept where no whole case has it: see tests/golden/expected.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from capsmith.commands.generate import generate
from capsmith.merging.lock import LOCK_PATH
from capsmith.tree import digest
from tests.golden.cases import Case, cases, compared
from tests.golden.expected import WHOLE, derive
from tests.golden.files import difference, read, write


def update(case: Case) -> str:
    """Replace the files that a case keeps; the diff, empty when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        generate(case.spec, Path(folder) / case.name)
        new = compared(read(Path(folder) / case.name))
    if case.name not in WHOLE:
        derived = derive(case.name, frozenset(digest(file.text) for file in new.values()))
        new = {
            path: file
            for path, file in new.items()
            if path == LOCK_PATH or derived.get(digest(file.text)) != file
        }
    changes = difference(read(case.kept) if case.kept.is_dir() else {}, new)
    if changes:
        shutil.rmtree(case.kept, ignore_errors=True)
        write(new, case.kept)
    return changes


def main(names: list[str]) -> int:
    known = {case.name: case for case in cases()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}")
    # Other cases are derived from whole ones, and keep files as those change.
    whole = [name for name in WHOLE if name in (names or known)]
    others = [name for name in known if name not in WHOLE and (whole or name in names)]
    for name in [*whole, *others]:
        changes = update(known[name])
        sys.stdout.write(changes or f"{name}: unchanged\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
