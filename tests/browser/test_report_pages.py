"""Reports in a browser: hostile strings run nothing, and everybody can read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.report_pages import html
from tests.browser.window import Window
from tests.unit.report_pages.test_hostile_pages import HOSTILE, make


def write(folder: Path, text: str) -> str:
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def test_hostile_strings_run_nothing(window: Window, tmp_path: Path) -> None:
    pages = [make(text) for text in HOSTILE]
    sections = tuple(section for page in pages for section in page.sections)
    facts = tuple(fact for page in pages for fact in page.facts)
    whole = replace(pages[0], sections=sections, facts=facts, held=facts)
    window.open(write(tmp_path, html.render(whole)))
    window.wait_text("of", "#count")
    assert window.count("details.finding") == 2 * len(HOSTILE)
    assert window.count("script") == 1
    assert window.count("img, iframe, object, embed, form, [onerror], [onclick], [onfocus]") == 0
    assert window.read_messages() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(window: Window, tmp_path: Path, scheme: str) -> None:
    window.open(write(tmp_path, html.render(make("harmless"))))
    assert window.find_violations(scheme) == []
