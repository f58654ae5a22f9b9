"""Positions of paths in the files that CRDs come from, found only when they are needed."""

from __future__ import annotations

from typing import Any

import yaml

from capsmith.findings import Location
from capsmith.manifests.parse import Manifest
from capsmith.yamldoc.compose import Path
from capsmith.yamldoc.nodes import nearest

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Positions:
    """Finds lines and columns; each file is composed once."""

    def __init__(self) -> None:
        self._documents: dict[str, dict[int, yaml.Node]] = {}

    def of(self, manifest: Manifest, path: Path) -> Location:
        """Return the position of ``path`` or of the nearest part above it that is in the file.

        For an object that several files were built into it is that of the object.
        """
        node = self._nodes(manifest).get(manifest.line)
        if node is None:
            return manifest.location
        mark = nearest(node, path) or node.start_mark
        return Location(manifest.file, mark.line + 1, mark.column + 1)

    def _nodes(self, manifest: Manifest) -> dict[int, yaml.Node]:
        if manifest.file not in self._documents:
            try:
                found = {
                    node.start_mark.line + 1: node
                    for node in yaml.compose_all(manifest.text, Loader=_LOADER)
                    if node is not None
                }
            except yaml.YAMLError:
                found = {}
            self._documents[manifest.file] = found
        return self._documents[manifest.file]
