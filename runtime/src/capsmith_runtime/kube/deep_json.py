"""JSON that is nested too deeply for the interpreter's limit.

The API server stores objects with up to 10,000 levels.  This module finds their deep containers
without decoding anything.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Final

MAX_DEPTH: Final = 100
"""Number of levels that are kept of what is nested too deeply."""
# The closing quote is optional, and the quantifier possessive: a search takes linear time even if
# the content is no JSON.
_NESTING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]+|[\]}]+', re.DOTALL)


def flatten(content: bytes) -> bytes:
    """Return JSON in which each container below a certain depth is null."""
    return _replace(content, lambda deep: b"null")


def is_deep(content: bytes) -> bool:
    """Return whether JSON has containers below the depth that :func:`flatten` keeps."""
    if content.count(b"{") + content.count(b"[") <= MAX_DEPTH:
        return False
    return next(_find_deep_containers(content), None) is not None


class DeepContainers:
    """Takes deep containers out of JSON, and puts them back into JSON that was made from it."""

    def __init__(self) -> None:
        # Random, so that no object can contain it.
        self._token = f"deep-{secrets.token_hex(16)}-".encode()
        self._taken: list[bytes] = []

    def take_out(self, content: bytes) -> bytes:
        """Return JSON in which each deep container is replaced by a string of its own."""
        return _replace(content, self._take)

    def put_back(self, content: bytes) -> bytes:
        """Return JSON in which each of these strings is replaced by its container.

        In JSON that is itself the content of a string, it is replaced by null, because such texts
        are limited in size.
        """
        within_text = re.sub(rb'\\"%s\d+\\"' % self._token, b"null", content)
        return re.sub(rb'"%s(\d+)"' % self._token, self._find, within_text)

    def _take(self, deep: bytes) -> bytes:
        self._taken.append(deep)
        return json.dumps(f"{self._token.decode()}{len(self._taken) - 1}").encode()

    def _find(self, match: re.Match[bytes]) -> bytes:
        return self._taken[int(match[1])]


def _replace(content: bytes, function: Callable[[bytes], bytes]) -> bytes:
    parts, begin = list[bytes](), 0
    for first, end in _find_deep_containers(content):
        parts += [content[begin:first], function(content[first:end])]
        begin = end
    return b"".join((*parts, content[begin:]))


def _find_deep_containers(content: bytes) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each container that is nested in ``MAX_DEPTH`` others."""
    depth, deep = 0, 0
    for match in _NESTING.finditer(content):
        first, length = content[match.start()], match.end() - match.start()
        if first == ord(b'"'):
            continue
        before = depth
        depth += length if first in b"[{" else -length
        if before <= MAX_DEPTH < depth:
            deep = match.start() + MAX_DEPTH - before
        elif depth <= MAX_DEPTH < before:
            yield deep, match.start() + before - MAX_DEPTH
