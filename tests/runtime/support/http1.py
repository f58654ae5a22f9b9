"""The part of HTTP/1.1 that a proxy needs to separate messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

_PART_BYTES = 65536


@dataclass(frozen=True)
class Head:
    """A start line and headers; `raw` holds the bytes as received."""

    start: str
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True)
class Answer:
    """A response that the proxy itself sends."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def render(self) -> bytes:
        headers = {"Content-Type": "application/json", **self.headers}
        lines = [f"{name}: {value}" for name, value in headers.items()]
        start = f"HTTP/1.1 {self.status} Fault"
        length = f"Content-Length: {len(self.body)}"
        return "\r\n".join([start, length, *lines, "", ""]).encode() + self.body


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """Return the next head, or None if the other side has closed the connection."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    start, *lines = raw.decode("latin-1").strip().split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return Head(start, {name.lower(): value.strip() for name, _, value in pairs}, raw)


async def body_parts(reader: asyncio.StreamReader, head: Head) -> AsyncIterator[bytes]:
    """Yield the raw bytes of the body that follows `head` as they arrive, with chunk marks."""
    if head.headers.get("transfer-encoding") == "chunked":
        size = -1
        while size:
            line = await reader.readuntil(b"\r\n")
            size = int(line.partition(b";")[0], 16)
            yield line + await reader.readexactly(size + 2)
        return
    left = int(head.headers.get("content-length", "0"))
    while left:
        part = await reader.read(min(_PART_BYTES, left))
        if not part:
            raise EOFError("the body ended early")
        left -= len(part)
        yield part
