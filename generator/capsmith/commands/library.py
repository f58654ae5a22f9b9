"""Read the runtime library that repositories carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from capsmith import __version__, resources
from capsmith.contract.reading import parse
from capsmith.output.runtime import PERMISSIONS_FILE, SLICES_FILE, Library, Slice
from capsmith.workspace.texts import LazyTexts

if TYPE_CHECKING:
    from capsmith.output.rbac.model import DeclaredPermissions


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
        __version__, sources, tuple(data["common"]["requires"]), slices, _Permissions(sources)
    )


class _Permissions(Mapping[str, "DeclaredPermissions"]):
    """What the library declares, by folder; each file is validated at its first use.

    A provider needs few of them, and the others would take longer than its own.
    """

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._files = {
            path.removesuffix(f"/{PERMISSIONS_FILE}"): path
            for path in sources
            if path.endswith(f"/{PERMISSIONS_FILE}")
        }
        self._read: dict[str, DeclaredPermissions] = {}

    def __getitem__(self, folder: str) -> DeclaredPermissions:
        if folder not in self._read:
            # Imported here: building the validators takes time.
            from capsmith.output.rbac.declarations import declared_permissions

            path = self._files[folder]
            self._read[folder] = declared_permissions(parse(self._sources[path], path), path)
        return self._read[folder]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)
