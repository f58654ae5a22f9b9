"""Shapes of control planes, by contract version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract.control_plane_facts import ControlPlaneShape
from capsmith_runtime.contract.v1beta1.control_plane_status import V1Beta1ControlPlane
from capsmith_runtime.contract.v1beta2.control_plane_status import V1Beta2ControlPlane

_KNOWN: Final[tuple[ControlPlaneShape, ...]] = (V1Beta2ControlPlane(), V1Beta1ControlPlane())
CONTROL_PLANE_SHAPES: Final[Mapping[str, ControlPlaneShape]] = {
    known.contract: known for known in _KNOWN
}
"""By contract version."""
