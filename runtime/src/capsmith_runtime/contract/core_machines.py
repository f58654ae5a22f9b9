"""Readers and writers of Machines, by version of core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract.control_plane_machine import CoreMachines
from capsmith_runtime.contract.v1beta1.core_machines import CoreMachinesV1Beta1
from capsmith_runtime.contract.v1beta2.core_machines import CoreMachinesV1Beta2

_KNOWN: Final[tuple[CoreMachines, ...]] = (CoreMachinesV1Beta2(), CoreMachinesV1Beta1())
CORE_MACHINES: Final[Mapping[str, CoreMachines]] = {known.version: known for known in _KNOWN}
"""By version of core."""
