"""``python -m tests.golden.update [CASE...]``: take what is generated now as expected."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from tests.golden.cases import Case, cases, difference, generated, kept, read


def update(case: Case) -> str:
    """Replace the expected tree of a case; the diff, empty when nothing changed."""
    with tempfile.TemporaryDirectory() as folder:
        new = kept(generated(case, Path(folder) / case.name))
    old = read(case.expected) if case.expected.is_dir() else {}
    changes = difference(old, new)
    if changes:
        shutil.rmtree(case.expected, ignore_errors=True)
        for path, file in new.items():
            target = case.expected / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.text.encode())
            target.chmod(0o755 if file.executable else 0o644)
    return changes


def main(names: list[str]) -> int:
    known = {case.name: case for case in cases()}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"no such case: {', '.join(unknown)}; there are {', '.join(known)}")
    for name in names or known:
        changes = update(known[name])
        sys.stdout.write(changes or f"{name}: unchanged\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
