"""Reports in a browser: hostile strings run nothing, and everybody can read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from capsmith.findings import Location
from capsmith.report_pages import html
from capsmith.report_pages.model import Entry, Group, ReportPage, Section
from tests.browser.window import ENTER, Window
from tests.unit.report_pages.test_hostile_pages import HOSTILE, make


def write(folder: Path, text: str) -> str:
    path = folder / "report.html"
    path.write_text(text, encoding="utf-8")
    return path.as_uri()


def test_hostile_strings_run_nothing(window: Window, tmp_path: Path) -> None:
    pages = [make(text) for text in HOSTILE]
    sections = tuple(section for page in pages for section in page.sections)
    facts = tuple(fact for page in pages for fact in page.facts)
    folders = tuple(folder for page in pages for folder in page.folders)
    whole = replace(pages[0], sections=sections, facts=facts, held=facts, folders=folders)
    window.open(write(tmp_path, html.render(whole)))
    window.wait_text("of", "#count")
    assert window.count("details.finding") == 2 * len(HOSTILE)
    assert window.count("script") == 1
    assert window.count("img, iframe, object, embed, form, [onerror], [onclick], [onfocus]") == 0
    assert window.read_messages() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("case", ["everything", "several releases"])
def test_axe_finds_no_violation(window: Window, tmp_path: Path, scheme: str, case: str) -> None:
    page = make("harmless") if case == "everything" else make_several()
    window.open(write(tmp_path, html.render(page)))
    assert window.find_violations(scheme) == []


def make_several() -> ReportPage:
    """Return a report on two releases, one of which violates a rule in many places."""
    cores = ("v1.10", "v1.11")
    first = [Entry("CC-01", f"place {number}", folder="v1") for number in range(60)]
    entries = (*first, Entry("CC-02", "alone", folder="v2", releases=cores[:1]))
    folders = (("v1", "60 places break."), ("v2", "1 place breaks."))
    sections = (Section("Breaks", (Group("It breaks.", entries),)),)
    return ReportPage(
        "capsmith verify", "It breaks.", True, sections=sections, folders=folders, releases=cores
    )


IN_SIGHT = "const box = document.querySelector(arguments[0])?.getBoundingClientRect();"
IN_SIGHT += "return box && box.top >= -1 && box.top < innerHeight"


@pytest.mark.parametrize("has_script", [True, False], ids=["script", "no script"])
def test_cells_of_the_matrix_lead_to_findings(
    window: Window, tmp_path: Path, has_script: bool
) -> None:
    window.open(write(tmp_path, html.render(make_several())))
    disable = "Emulation.setScriptExecutionDisabled"
    window.driver.execute_cdp_cmd(disable, {"value": not has_script})
    try:
        window.driver.refresh()
        assert window.find("#controls").is_displayed() == has_script
        window.press(window.find('td a[href="#finding-61"]'), ENTER)
        window.wait(lambda: window.run(IN_SIGHT, "#finding-61"))
        window.press(window.find("td a", "60"), ENTER)
        window.wait(lambda: window.run(IN_SIGHT, "#cell-1-1"))
        window.press(window.find('#cell-1-1 a[href="#finding-60"]'), ENTER)
        window.wait(lambda: window.run(IN_SIGHT, "#finding-60"))
        # Both releases of core have the same findings, and so the same list.
        assert window.count('td a[href="#core-1-1"]') == 2
        window.press(window.find('td a[href="#core-1-1"]'), ENTER)
        window.wait(lambda: window.run(IN_SIGHT, "#core-1-1"))
        assert window.find("#core-1-1 h3").text == "CC-01 in v1.10, v1.11"
        window.press(window.find('#core-1-1 a[href="#finding-59"]'), ENTER)
        window.wait(lambda: window.run(IN_SIGHT, "#finding-59"))
    finally:
        window.driver.execute_cdp_cmd(disable, {"value": False})


def test_the_tab_key_reaches_every_control(window: Window, tmp_path: Path) -> None:
    window.open(write(tmp_path, html.render(make("https://example.com/harmless"))))
    window.press(window.find("summary", "harmless"), " ")
    assert window.find_unreachable() == []


def test_findings_are_sorted_by_the_keyboard(window: Window, tmp_path: Path) -> None:
    entries = (Entry("CC-02", "first"), Entry("CC-01", "second"))
    page = ReportPage("", "", True, sections=(Section("Breaks", (Group("", entries),)),))
    window.open(write(tmp_path, html.render(page)))
    rules = "return [...document.querySelectorAll('.finding')].map(each => each.dataset.rule)"
    assert window.run(rules) == ["CC-02", "CC-01"]
    window.press(window.find("#order"), "by r")
    window.wait(lambda: window.run(rules) == ["CC-01", "CC-02"])


def test_findings_of_a_file_are_sorted_by_line(window: Window, tmp_path: Path) -> None:
    places = [
        ("b.yaml", 10, 3),
        ("b.yaml", 9, 1),
        ("a.yaml", 100, 1),
        ("b.yaml", 10, 2),
        ("", 0, 0),
    ]
    entries = tuple(Entry("CC-01", f"{place}", Location(*place)) for place in places)
    page = ReportPage("", "", True, sections=(Section("Breaks", (Group("", entries),)),))
    window.open(write(tmp_path, html.render(page)))
    window.press(window.find("#order"), "by f")
    shown = "return [...document.querySelectorAll('.finding summary')].map(e => e.textContent)"
    expected = [f"CC-01 {place}" for place in sorted(places)]
    window.wait(lambda: window.run(shown) == expected)


def test_a_printed_report_has_all_findings_and_no_controls(window: Window, tmp_path: Path) -> None:
    window.open(write(tmp_path, html.render(make_several())))
    assert window.find("#controls").is_displayed()
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        window.wait(lambda: not window.find("#controls").is_displayed())
        shown = "return [...document.querySelectorAll('.finding')].every(e => e.checkVisibility())"
        window.wait(lambda: window.run(shown))
    finally:
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_what_is_folded_is_printed(window: Window, tmp_path: Path) -> None:
    window.open(write(tmp_path, html.render(make("harmless"))))
    window.press(window.find("#fold"), ENTER)
    parts = "return [...document.querySelectorAll('details dl, details li')].map("
    parts += "e => e.checkVisibility({contentVisibilityAuto: true}))"
    # The browser knows what is visible only once it has drawn a frame.
    window.wait(lambda: not any(window.run(parts)))
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        window.wait(lambda: all(window.run(parts)))
    finally:
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_finding_that_the_filter_hides_is_shown_again(window: Window, tmp_path: Path) -> None:
    window.open(write(tmp_path, html.render(make_several())))
    window.press(window.find("#filter"), "alone")
    window.wait_text("1 of 61", "#count")
    window.press(window.find("#fold"), ENTER)
    window.press(window.find('#cell-1-1 a[href="#finding-7"]'), ENTER)
    window.wait(lambda: window.run(IN_SIGHT, "#finding-7[open]:not([hidden])"))
    assert window.find("#count").text == "61 of 61"
