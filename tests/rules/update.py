"""Write the expected findings again: ``python -m tests.rules.update``; then read the diff."""

from __future__ import annotations

from tests.rules.cases import cases


def main() -> None:
    for case in cases():
        (case.folder / "findings.txt").write_text(case.actual())


if __name__ == "__main__":
    main()
