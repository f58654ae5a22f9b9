"""Pictures of the page in the documentation are those of the page as it is now."""

from __future__ import annotations

import struct

from tests.browser.pictures import DIGEST, PICTURES, compute_digest

NAMES = ("page", "page-waiting", "page-restarting")


def test_pictures_are_as_new_as_the_page() -> None:
    """Fail after a change of the page, without comparing pixels of different browsers."""
    recorded = DIGEST.read_text(encoding="utf-8").strip()
    assert recorded == compute_digest(), "run python -m tests.browser.pictures, and look at them"


def test_all_pictures_are_there() -> None:
    for name in NAMES:
        data = (PICTURES / f"{name}.png").read_bytes()
        assert data.startswith(b"\x89PNG")
        assert struct.unpack(">II", data[16:24]) == (1280, 760)
