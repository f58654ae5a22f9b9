"""Status writers of infrastructure objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract.status_writer import StatusWriter
from capsmith_runtime.contract.v1beta1.status import V1Beta1Status
from capsmith_runtime.contract.v1beta2.status import V1Beta2Status

_KNOWN: Final[tuple[StatusWriter, ...]] = (V1Beta2Status(), V1Beta1Status())
STATUS_WRITERS: Final[Mapping[str, StatusWriter]] = {known.contract: known for known in _KNOWN}
"""By contract version."""
