"""Write docs/traceability/ and report mistakes: ``python -m tests.traceability``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.traceability.catalogue import ROOT
from tests.traceability.document import FOLDER, render
from tests.traceability.reasons import read_reasons
from tests.traceability.table import table


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Replace the pages in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in files:
            old.unlink()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> int:
    made = table()
    write(ROOT / FOLDER, render(made))
    proven = sum(row.proven for row in made.rows)
    print(f"{len(made.rows)} rules, {proven} proven; {FOLDER} is written")
    awaited = [row.rule.id for row in made.rows if row.awaited]
    arrived = read_reasons().awaited & {row.rule.id for row in made.rows if row.proven}
    for words, ids in (("awaited", awaited), ("awaited, and proven by now", sorted(arrived))):
        if ids:
            print(f"{words}: {', '.join(ids)}")
    for mistake in made.mistakes:
        print(mistake)
    return 1 if made.mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
