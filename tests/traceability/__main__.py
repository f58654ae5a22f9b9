"""Write docs/traceability.md anew, and say what is wrong: ``python -m tests.traceability``."""

from __future__ import annotations

import sys

from tests.traceability.catalogue import ROOT
from tests.traceability.document import PATH, render
from tests.traceability.reasons import read_reasons
from tests.traceability.table import table


def main() -> int:
    made = table()
    (ROOT / PATH).parent.mkdir(exist_ok=True)
    (ROOT / PATH).write_text(render(made), encoding="utf-8")
    proven = sum(row.proven for row in made.rows)
    print(f"{len(made.rows)} rules, {proven} proven; {PATH} is written")
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
