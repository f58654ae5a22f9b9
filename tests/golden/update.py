"""``python -m tests.golden.update [CASE...]``: take what is generated now as expected.

A file is kept where neither an earlier case nor another component has it: see
tests/golden/expected.py.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from capsmith.commands.generate import generate
from capsmith.merging.lock import LOCK_PATH
from capsmith.tree import digest
from tests.golden.cases import Case, cases, compared
from tests.golden.expected import ORDER, WHOLE, derive, derive_components, sources
from tests.golden.files import File, difference, read, write


def update(case: Case) -> str:
    """Replace the files that a case keeps; the diff, empty when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        generate(case.spec, Path(folder) / case.name)
        new = compared(read(Path(folder) / case.name))
    if case.name not in WHOLE:
        derived = derive(case.name, frozenset(digest(file.text) for file in new.values()))
        new = _kept(case.name, new, derived)
    changes = difference(read(case.kept) if case.kept.is_dir() else {}, new)
    if changes:
        shutil.rmtree(case.kept, ignore_errors=True)
        write(new, case.kept)
    return changes


def _kept(name: str, files: Mapping[str, File], derived: Mapping[str, File]) -> dict[str, File]:
    """Return the lock, and files that follow neither from earlier cases nor from each other."""
    kept: dict[str, File] = {LOCK_PATH: files[LOCK_PATH]}
    known = dict(derived)
    for path, file in sorted(files.items()):
        if path != LOCK_PATH and known.get(digest(file.text)) != file:
            kept[path] = file
            known |= derive_components(name, file)
    return kept


def main(names: list[str]) -> int:
    known = {case.name: case for case in cases()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}")
    renewed: set[str] = set()
    for name in ORDER:
        # What a case keeps depends on those that its texts are derived from.
        if names and name not in names and renewed.isdisjoint(sources(name)):
            continue
        renewed.add(name)
        changes = update(known[name])
        sys.stdout.write(changes or f"{name}: unchanged\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
