"""The folders of the runtime library by what needs them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SLICE_OF_COMPONENT: Final[Mapping[str, str]] = {
    "infrastructure": "infrastructure",
    "bootstrap": "bootstrap",
    "control-plane": "controlplane",
    "ipam": "ipam",
    "runtime-extension": "extension",
    "addon": "addon",
}
