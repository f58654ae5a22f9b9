"""Phrases that docs/style.md replaces; their number may only shrink.

``python -m tests.unit.test_english [PATH]...`` lists the places.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).with_name("english.yaml")

_CONFIGURATION: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
PHRASES: dict[str, str] = _CONFIGURATION["phrases"]
MAXIMUM: dict[str, int] = _CONFIGURATION["maximum"]

_PHRASE = re.compile(
    "|".join(rf"\b{phrase}\b".replace(" ", r"[\s#]+") for phrase in PHRASES), re.IGNORECASE
)
# By pattern, not by Python's tokenizer: blueprints hold Jinja tags.
_PROSE_IN_PYTHON = re.compile(
    r'"""(?:\\.|[^\\])*?"""'
    r"|(?:[ \t]*\#[^\n]*\n?)+"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])*'",
    re.DOTALL,
)
_SKIPPED = {"__pycache__", "LICENSE"}
_WITHOUT_PROSE = {".png", ".pyc", ".json", ".LICENSE"}
_NOT_WRITTEN_BY_HAND = ("docs/traceability/", "docs/contracts/", "tests/golden/")
_QUOTES_THE_PHRASES = ("docs/style.md", "tests/unit/test_english.py", "tests/unit/english.yaml")


def findings(path: str, root: Path = ROOT) -> Iterator[str]:
    """Yield ``file:line: phrase`` for each phrase below a file or folder."""
    for file in _files(root / path):
        name = file.relative_to(root).as_posix()
        if name.startswith(_NOT_WRITTEN_BY_HAND + _QUOTES_THE_PHRASES):
            continue
        text = file.read_text(encoding="utf-8", errors="replace")
        for start, prose in _prose(file.name, text):
            for match in _PHRASE.finditer(prose):
                line = text.count("\n", 0, start + match.start()) + 1
                yield f"{name}:{line}: {' '.join(match[0].split())}"


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*")
        if file.is_file() and file.suffix not in _WITHOUT_PROSE and not _SKIPPED & {*file.parts}
    )


def _prose(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Yield docstrings, messages and comments of Python, all of another file; with the offset."""
    if name.endswith((".py", ".py.jinja")):
        yield from ((match.start(), match[0]) for match in _PROSE_IN_PYTHON.finditer(text))
    else:
        yield 0, text


@pytest.mark.parametrize("path", MAXIMUM)
def test_phrases_only_become_fewer(path: str) -> None:
    number = len(list(findings(path)))
    assert number <= MAXIMUM[path], (
        f"{path}: {number} phrases, the maximum is {MAXIMUM[path]}; see docs/style.md, and"
        f" `python -m tests.unit.test_english {path}` for the places"
    )
    assert number == MAXIMUM[path], f"{path}: lower the maximum to {number} in {DATA.name}"


def test_prose_of_python(tmp_path: Path) -> None:
    (tmp_path / "module.py.jinja").write_text(
        '"""Done\nanew."""\n{% if x %}\nnobody = "it\'s nobody"  # whoever; don\'t\n{% endif %}\n'
        "shall = f(\n    'no more than one',\n    'no more',\n)\n# It is\n# told.\n"
    )
    assert list(findings(".", tmp_path)) == [
        "module.py.jinja:2: anew",
        "module.py.jinja:4: nobody",
        "module.py.jinja:4: whoever",
        "module.py.jinja:8: no more",
        "module.py.jinja:10: is # told",
    ]


def test_prose_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "docs" / "traceability").mkdir(parents=True)
    (tmp_path / "docs" / "traceability" / "page.md").write_text("nobody")
    (tmp_path / "docs" / "style.md").write_text("nobody")
    (tmp_path / "docs" / "other.md").write_text("One file\nof the\nauthor's. Nobody.")
    assert list(findings("docs", tmp_path)) == [
        "docs/other.md:2: of the author's",
        "docs/other.md:3: Nobody",
    ]


if __name__ == "__main__":
    for path in sys.argv[1:] or MAXIMUM:
        for finding in findings(path):
            print(finding)
