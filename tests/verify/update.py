"""Write the expected reports again: ``python -m tests.verify.update``; then read the diff."""

from __future__ import annotations

import os

from tests.verify.places import FORMATS, ROOT, report


def main() -> None:
    os.chdir(ROOT)
    for format, name in FORMATS.items():
        (ROOT / "expected" / name).write_text(report(format), encoding="utf-8")


if __name__ == "__main__":
    main()
