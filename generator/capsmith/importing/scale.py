"""Describe the subresource scale of an imported kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capsmith.manifests.crds import Crd
from capsmith.manifests.parse import list_of, mapping_of, text_of

_KEYS = ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")


def describe_scale(crd: Crd, made: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``scale`` entry if a served version differs from the generated CRD ``made``.

    Its value is false if the generated CRD has the subresource, and no served version does.
    """
    usual = {
        text_of(each, "name"): mapping_of(each, "subresources", "scale")
        for each in list_of(made, "spec", "versions")
    }
    served = [each for each in crd.versions if each.served]
    for version in served:
        own = mapping_of(version.subresources, "scale")
        if own and own != usual.get(version.name):
            return {"scale": {key: own[key] for key in _KEYS if own.get(key)}}
    has_none = not any("scale" in each.subresources for each in served)
    is_usual = any(usual.get(each.name) for each in served)
    return {"scale": False} if has_none and is_usual else {}
