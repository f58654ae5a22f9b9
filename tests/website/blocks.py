"""Code blocks of a page."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block: with a title it is the file of that path, without one its text is shown."""

    language: str
    title: str
    text: str


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page in their order."""
    return [Block(*match.groups(default="")) for match in _FENCE.finditer(page)]
