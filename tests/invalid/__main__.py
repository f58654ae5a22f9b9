"""Writes findings.txt of every case."""

from __future__ import annotations

from tests.invalid.cases import FOLDER, cases, judge, text_of

for case in cases():
    said = text_of(judge((FOLDER / case / "provider.yaml").read_text(encoding="utf-8")))
    (FOLDER / case / "findings.txt").write_text(said, encoding="utf-8")
