"""Changes of files, applied together."""

from __future__ import annotations

from typing import NamedTuple

from capsmith.safetext import RelativePath


class Write(NamedTuple):
    """The content of a file, and its permissions; None keeps those that the file has."""

    content: bytes
    mode: int | None


class Change:
    """Writes and removals that take effect together or not at all."""

    def __init__(self) -> None:
        self.writes: dict[str, Write] = {}
        self.removals: set[str] = set()

    def write(
        self, path: str, content: str | bytes, executable: bool | None = False, mode: int = 0
    ) -> None:
        """Write ``content`` (text as UTF-8) to ``path``.

        Its permissions are ``mode`` if given, else the usual ones; if ``executable`` is None, the
        file keeps its permissions.
        """
        data = content.encode() if isinstance(content, str) else content
        usual = None if executable is None else 0o755 if executable else 0o644
        self.writes[str(RelativePath(path))] = Write(data, mode or usual)

    def remove(self, path: str) -> None:
        """Remove ``path``."""
        self.removals.add(str(RelativePath(path)))

    def __bool__(self) -> bool:
        return bool(self.writes or self.removals)
