"""Format Python in process with black, whose style is stable within a calendar year."""

from __future__ import annotations

import hashlib
from importlib.metadata import version

from capsmith.blueprint.environment import Cache
from capsmith.errors import BlueprintError

LINE_LENGTH = 100
"""Columns, here and in the generated repository."""


class Formatter:
    """Runs black on text that is not in the cache."""

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._style = f"black-{version('black')}-{LINE_LENGTH}" if cache is not None else ""

    def format(self, text: str, blueprint: str) -> str:
        """Return ``text`` as black leaves it.

        Raises BlueprintError when ``text`` is no Python; ``blueprint`` is named in it.
        """
        if self._cache is None:
            return self._black(text, blueprint)
        key = f"{self._style}-{hashlib.sha256(text.encode()).hexdigest()}"
        kept = self._cache.get(key)
        if kept is not None:
            return kept.decode()
        formatted = self._black(text, blueprint)
        self._cache.put(key, formatted.encode())
        return formatted

    def _black(self, text: str, blueprint: str) -> str:
        # Imported when first needed: a run whose files are all cached does not need it.
        import black
        from black.mode import TargetVersion
        from black.parsing import InvalidInput

        mode = black.Mode(line_length=LINE_LENGTH, target_versions={TargetVersion.PY311})
        try:
            return black.format_str(text, mode=mode)
        except (InvalidInput, ValueError) as error:
            raise BlueprintError(
                "blueprint-python",
                f"the rendered text is not valid Python: {error}",
                file=blueprint,
                hint="Correct the blueprint.",
            ) from error
