"""Each block of a page has an entry in blocks.yaml, and each entry a block."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

import pytest

from tests.website.blocks import blocks
from tests.website.pages import ROOT, WHOLE, Shown, declared, entries, matching, pages

_KINDS = {"layers", "lab", "parse", "program", "provider", "reader", "run", "text", WHOLE}
_LANGUAGES = {
    "program": {"python"},
    "provider": {"yaml"},
    "reader": {"yaml"},
    "run": {"console"},
    "lab": {"console", "sh"},
    "parse": {"console", "sh"},
    "layers": {""},
    "text": {"", "jinja", "mermaid", "python", "sh"},
}
"""What may be done with a block in a language: `text` is nothing at all."""
_SHOWN = [Shown(page, block, {}) for page in pages() for block in blocks(page.text)]


@pytest.mark.parametrize("shown", _SHOWN, ids=str)
def test_each_block_has_one_entry(shown: Shown) -> None:
    keys = matching(shown.page, shown.block)
    first = shown.block.text.partition("\n")[0]
    assert len(keys) == 1, f"{shown}: {first!r}: describe the block in tests/website/blocks.yaml"


def test_each_entry_has_a_block() -> None:
    found = {(shown.page.source, *matching(shown.page, shown.block)) for shown in _SHOWN}
    assert {(page, key) for page, keys in entries().items() for key in keys} == found


def test_each_entry_is_of_one_kind_and_fits_the_language() -> None:
    for shown in _SHOWN:
        (key,) = matching(shown.page, shown.block)
        if key == WHOLE:
            continue
        (kind,) = entries()[shown.page.source][key].keys() & _KINDS
        assert shown.block.language in _LANGUAGES[kind], shown


def test_pages_that_are_run_as_scripts_are() -> None:
    scripts = {page: keys[WHOLE] for page, keys in entries().items() if WHOLE in keys}
    for page, test in scripts.items():
        text = (ROOT / str(test)).read_text(encoding="utf-8")
        assert f'steps("{page.removeprefix("docs/")}")' in text
    assert len(scripts) == 2


def test_blocks_are_found() -> None:
    text = "a\n```sh\nb\n```\n- c:\n\n    ```yaml\n    d: e\n    ```\n"
    assert [(block.language, block.text, block.line) for block in blocks(text)] == [
        ("sh", "b\n", 2),
        ("yaml", "d: e\n", 7),
    ]
    # As many as GitHub would show.
    fences = sum(len(re.findall(r"^ *```", page.text, re.MULTILINE)) for page in pages())
    assert fences == 2 * len(_SHOWN)
    assert Counter(shown.block.language for shown in _SHOWN)["python"] > 20


@pytest.mark.parametrize("shown", declared("layers"), ids=str)
def test_layers(shown: Shown) -> None:
    """The layers of a page are those that import-linter checks, in their order."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith(shown.entry["layers"])
    )
    expected = [sorted(layer.replace("capsmith.", "").split(" | ")) for layer in layers]
    # Behind the names, a line may say what they are for.
    lines = [re.split(r" {2,}", line)[0] for line in shown.block.text.splitlines()]
    assert [sorted(line.split(" | ")) for line in lines] == expected
