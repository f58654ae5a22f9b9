"""The diagrams of generated repositories, as the site's Mermaid draws them."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from tests.browser.window import Window
from tests.checkout import ROOT
from website.examples import example_pages

MERMAID = ROOT / "website" / "vendor" / "mermaid.tiny.js"
REFERENCES = sorted((ROOT / "tests" / "golden").glob("*/expected/docs/reference.md"))
_DIAGRAM = re.compile(r"```mermaid\n(.*?)```", re.DOTALL)


def test_mermaid_draws_all_diagrams(window: Window, tmp_path: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in REFERENCES]
    diagrams = [
        each for text in [*texts, *example_pages().values()] for each in _DIAGRAM.findall(text)
    ]
    assert len(diagrams) > 30
    page = tmp_path / "page.html"
    shown = "".join(f'<pre class="mermaid">{escape(each)}</pre>' for each in diagrams)
    page.write_text(
        f'<meta charset="utf-8">{shown}<script src="{MERMAID.as_uri()}"></script>', encoding="utf-8"
    )
    window.open(page.as_uri())
    window.wait(lambda: window.count(".mermaid[data-processed] svg") == len(diagrams))
    window.wait_text("AcmeMachineTemplate")
    assert window.count("svg[aria-roledescription=error]") == 0
    assert window.read_messages() == []
