"""What the browser loads from npm is unchanged, and comes with its licenses."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import yaml

import capsmith.clusters.lab.page

FOLDER = Path(capsmith.clusters.lab.page.__path__[0]) / "assets" / "vendor"
RECORDS = yaml.safe_load((FOLDER / "vendor.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_files_are_those_of_the_record(name: str) -> None:
    record = RECORDS[name]
    assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == record["sha256"]
    license = (FOLDER / record["license_file"]).read_text(encoding="utf-8")
    assert {"MIT": "MIT License", "Apache-2.0": "Apache License"}[record["license"]] in license


def test_each_file_has_a_record() -> None:
    assert {path.name for path in FOLDER.glob("*.js")} == {*RECORDS}
