"""Strategic merge patches of kustomizations, as far as checks need them.

Mappings are merged, null deletes, lists of named items are merged by name and others replaced.
JSON patches are not applied.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from capsmith.manifests.parse import Manifest, mapping_of, text_of


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch and its target."""

    document: Mapping[str, Any]
    target: Mapping[str, Any]
    """``target`` of the kustomization; empty where the patch names its object itself."""

    def fits(self, manifest: Manifest, original_name: str) -> bool:
        """Return whether it is for ``manifest``, by the name without prefixes."""
        names = {manifest.name, original_name}
        if not self.target:
            target_name = text_of(self.document, "metadata", "name")
            return text_of(self.document, "kind") == manifest.kind and target_name in names
        kind, name = text_of(self.target, "kind"), text_of(self.target, "name")
        try:
            named = not name or any(re.fullmatch(name, one) for one in names)
        except re.error:
            return False
        return named and kind in {"", manifest.kind} and set(self.target) <= {"kind", "name"}

    def apply(self, manifest: Manifest) -> None:
        """Merge into the manifest's own document; its kind and name stay."""
        document: Any = manifest.document
        for key, value in self.document.items():
            if key == "metadata":
                value = {k: v for k, v in mapping_of(value).items() if k != "name"}
            if key not in {"apiVersion", "kind"}:
                document[key] = merged(document.get(key), value)


def merged(base: Any, patch: Any) -> Any:
    """Return ``base`` with ``patch`` merged into it; neither is changed."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        result = dict(base)
        for key, value in patch.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = merged(result.get(key), value)
        return result
    if _named(base) and _named(patch):
        return _by_name(base, patch)
    return copy.deepcopy(patch)


def _by_name(base: list[Any], patch: list[Any]) -> list[Any]:
    changes = {item["name"]: item for item in patch}
    there = {item["name"] for item in base}
    new = [copy.deepcopy(item) for item in patch if item["name"] not in there]
    return [merged(item, changes.get(item["name"], {})) for item in base] + new


def _named(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) and text_of(item, "name") for item in value)
    )
