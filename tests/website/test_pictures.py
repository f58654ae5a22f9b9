"""The pictures of the explanation are those of the script."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from website import terminal
from website.pictures import FOLDER, PICTURES, Picture, svg


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_up_to_date(picture: Picture) -> None:
    committed = (FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    assert committed == svg(picture), "run `python -m website.pictures` and commit it"
    assert ElementTree.fromstring(committed).tag.endswith("svg")


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_boxes_are_inside(picture: Picture) -> None:
    for box in picture.boxes:
        assert 88 <= box.x <= picture.width - 88
        assert 23 <= box.y <= picture.height - 23


def test_the_demonstration_is_that_of_its_record() -> None:
    picture = terminal.svg(terminal.RECORD.read_text(encoding="utf-8"))
    assert terminal.PICTURE.read_text(encoding="utf-8") == picture
    assert "has 3 Machines Running" in picture
    assert "bin/capsmith" not in picture
