"""The versions that ``--version`` prints."""

from __future__ import annotations

import re

from capsmith import __version__, resources
from capsmith.contract.compatibility import load_compatibility
from capsmith.contract.load import list_versions

_VERSION = re.compile(r'^__version__.* = "([^"]+)"$', re.MULTILINE)


def read_versions() -> tuple[str, ...]:
    """Return the lines that ``--version`` prints, starting with capsmith's own version."""
    core = load_compatibility(resources.schemas()).core
    source = (resources.runtime() / "version.py").read_text(encoding="utf-8")
    match = _VERSION.search(source)
    assert match is not None
    return (
        f"capsmith {__version__}",
        f"capsmith_runtime {match[1]}",
        f"contracts {', '.join(list_versions())}",
        f"core {', '.join(each.release for each in core.executed)}",
    )
