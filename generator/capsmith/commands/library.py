"""Read the runtime library that repositories carry."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from capsmith import __version__, resources
from capsmith.contract.reading import parse
from capsmith.provider.rbac import Declarations
from capsmith.provider.runtime import PERMISSIONS_FILE, SLICES_FILE, Library, Slice
from capsmith.workspace.texts import LazyTexts


@cache
def runtime_library() -> Library:
    """Return the runtime library that is shipped with capsmith."""
    sources = LazyTexts(resources.runtime())
    data: dict[str, Any] = parse(sources[SLICES_FILE], SLICES_FILE)
    slices = {
        name: Slice(tuple(entry.get("needs", ())), tuple(entry.get("requires", ())))
        for name, entry in data["slices"].items()
    }
    return Library(
        __version__, sources, tuple(data["common"]["requires"]), slices, _permissions(sources)
    )


def _permissions(sources: Mapping[str, str]) -> Declarations:
    # Imported here: building the validators takes time.
    from capsmith.provider.rbac.declarations import declared_permissions

    return {
        path.removesuffix(f"/{PERMISSIONS_FILE}"): declared_permissions(
            parse(sources[path], path), path
        )
        for path in sources
        if path.endswith(f"/{PERMISSIONS_FILE}")
    }
