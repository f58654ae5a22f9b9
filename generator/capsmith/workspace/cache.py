"""Cache slow results in a folder that belongs to the user. Without it, everything is only slower.

Some entries are executed (compiled blueprints), so a folder that other users can write to is not
used.  Any number of runs may share the folder.  Entries are renamed into place and are returned
only if their digest matches, so an entry truncated by a full disk counts as missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import sys
import tempfile
from pathlib import Path


class FolderCache:
    """A cache with one file per entry, renamed into place and verified by digest."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_user(cls) -> FolderCache | None:
        """Return the user's cache, in ``$CAPSMITH_CACHE``, ``$XDG_CACHE_HOME`` or ``~/.cache``.

        Returns None if ``$CAPSMITH_CACHE`` is set but empty, or if the user has no home directory.
        """
        named = os.environ.get("CAPSMITH_CACHE")
        if named is not None:
            return cls(Path(named)) if named else None
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        try:
            return cls((base if base.is_absolute() else Path.home() / ".cache") / "capsmith")
        except RuntimeError:
            return None

    def get(self, key: str) -> bytes | None:
        """Return the value stored under ``key``, or None if it is missing or damaged."""
        try:
            if not self._is_private():
                return None
            content = self._path(key).read_bytes()
        except OSError:
            return None
        kept, value = content[:32], content[32:]
        return value if hashlib.sha256(value).digest() == kept else None

    def put(self, key: str, value: bytes) -> None:
        """Store ``value`` under ``key`` if the folder is writable. Never raises OSError."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_private():
                return
            descriptor, name = tempfile.mkstemp(dir=self._folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(hashlib.sha256(value).digest() + value)
                os.replace(name, self._path(key))
            except OSError:
                os.unlink(name)

    def _is_private(self) -> bool:
        if sys.platform == "win32":
            return True
        status = self._folder.stat()
        return status.st_uid == os.geteuid() and not status.st_mode & stat.S_IWOTH

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()
