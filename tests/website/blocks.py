"""Code blocks of a page, and code in its sentences."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

_FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(`+)(.+?)\1", re.DOTALL)


class Block(NamedTuple):
    """A block: with a title it is the file of that path, without one its text is shown."""

    language: str
    title: str
    text: str
    line: int = 0


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in their order; those of lists without their indentation."""
    return [
        Block(
            match[2],
            match[3] or "",
            textwrap.dedent(match[4]),
            page.count("\n", 0, match.start()) + 1,
        )
        for match in _FENCE.finditer(page)
    ]


def inline_code(page: str) -> list[str]:
    """Return the code in sentences and tables, each on one line."""
    return [" ".join(match[2].split()) for match in _INLINE.finditer(_FENCE.sub("", page))]
