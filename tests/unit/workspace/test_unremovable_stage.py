"""What a stage holds that cannot be removed is never written to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from capsmith.errors import Refused
from capsmith.workspace.journal import Change, Journal
from tests.conftest import without_privileges


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a folder that any user can reach, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def test_another_name_of_a_file_elsewhere_stays_in_the_stage(folder: Path) -> None:
    with without_privileges():
        (folder / "precious").write_text("precious")
        staged = folder / "repository/.capsmith/stage/new"
        staged.mkdir(parents=True)
        os.link(folder / "precious", staged / "Makefile")
        staged.chmod(0o555)
        change = Change()
        change.write("Makefile", "all:\n")

        with pytest.raises(Refused, match="cannot be removed") as raised:
            Journal(folder / "repository").stage(change)

        staged.chmod(0o755)
    assert raised.value.finding.location.file == ".capsmith/stage"
    assert (folder / "precious").read_text() == "precious"
