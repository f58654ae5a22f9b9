"""Status writers of bootstrap configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract.bootstrap_writer import BootstrapStatusWriter
from capsmith_runtime.contract.v1beta1.bootstrap_status import V1Beta1BootstrapStatus
from capsmith_runtime.contract.v1beta2.bootstrap_status import V1Beta2BootstrapStatus

_WRITERS: Final[tuple[BootstrapStatusWriter, ...]] = (
    V1Beta2BootstrapStatus(),
    V1Beta1BootstrapStatus(),
)
BOOTSTRAP_STATUS_WRITERS: Final[Mapping[str, BootstrapStatusWriter]] = {
    writer.contract: writer for writer in _WRITERS
}
"""Writers by contract version."""
