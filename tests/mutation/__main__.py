"""Run all mutants and print the table: ``python -m tests.mutation [RULE...]``."""

from __future__ import annotations

import sys

from tests.mutation.runs import runs, targets


def main() -> None:
    chosen = set(sys.argv[1:])
    mutants = found = 0
    print("| Rule | Contract | Mutants | Found | Source |\n|---|---|---|---|---|")
    survived = []
    for target in targets():
        if chosen and target.rule.id not in chosen:
            continue
        done = list(runs(target))
        caught = sum(1 for run in done if run.found)
        mutants, found = mutants + len(done), found + caught
        survived += [run.name for run in done if not run.found]
        where = "" if not done else "its good cases" if "/" in done[0].source else "generated"
        row = (target.rule.id, target.contract.version, len(done), caught, where)
        print(f"| {' | '.join(map(str, row))} |")
    print(f"\n{found} of {mutants} mutants are found.")
    for name in survived:
        print(f"survived: {name}")


if __name__ == "__main__":
    main()
