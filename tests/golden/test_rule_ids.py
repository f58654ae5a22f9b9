"""Comments name rules by their ids; each file that does so says where they are explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.golden.cases import Case, cases, compared, generated

LEGEND = "docs/reference.md"
_ID = re.compile(r"\b[A-Z]{2,3}-\d\d\b")


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_each_file_with_ids_of_rules_refers_to_the_legend(case: Case, tmp_path: Path) -> None:
    files = compared(generated(case, tmp_path / "repository"))
    naming = {path: file.text for path, file in files.items() if _ID.search(file.text)}

    assert {LEGEND, "config/default/kustomization.yaml"} & naming.keys()
    assert [path for path, text in naming.items() if LEGEND not in text] == [LEGEND]
    assert "`capsmith explain CC-31`" in naming[LEGEND]
