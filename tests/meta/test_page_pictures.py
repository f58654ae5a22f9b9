"""Pictures of page and reports in the documentation are those of the page and reports now."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.browser import digest, report_pictures
from tests.browser.pictures import DIGEST, PICTURES, compute_digest

NAMES = ("page", "page-waiting", "page-restarting")


def test_pictures_are_as_new_as_the_page() -> None:
    """Fail after a change of the page, without comparing pixels of different browsers."""
    recorded = DIGEST.read_text(encoding="utf-8").strip()
    assert recorded == compute_digest(), "run python -m tests.browser.pictures, and look at them"


def test_digest_is_that_of_code_without_comments_and_docstrings(tmp_path: Path) -> None:
    file = tmp_path / "a.py"

    def digest_of(text: str) -> str:
        file.write_text(text, encoding="utf-8")
        return digest.compute_digest([file], tmp_path)

    code = 'A = 1\n\n\ndef f() -> str:\n    """Return a."""\n    return "a"\n'
    before = digest_of(code)
    assert digest_of(code.replace("Return a.", "Return the\n    first one.")) == before
    assert digest_of(code.replace("A = 1", "# The one.\nA = 1")) == before
    assert digest_of(code.replace('return "a"', 'return "b"')) != before
    assert digest_of(code.replace("A = 1", "A = 2")) != before


def test_all_pictures_are_there() -> None:
    for name in NAMES:
        data = (PICTURES / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert struct.unpack(">II", data[16:24]) == (1280, 760)


def test_pictures_of_reports_are_as_new_as_the_reports() -> None:
    recorded = report_pictures.DIGEST.read_text(encoding="utf-8").strip()
    command = "python -m tests.browser.report_pictures"
    assert recorded == report_pictures.compute_digest(), f"run {command}, and look at them"


def test_all_pictures_of_reports_are_there(tmp_path: Path) -> None:
    for picture in report_pictures.list_pictures(tmp_path):
        data = (PICTURES / f"{picture.name}.png").read_bytes()
        size = struct.unpack(">II", data[16:24])
        assert (data[:4], size) == (b"\x89PNG", (report_pictures.WIDTH, report_pictures.HEIGHT))
