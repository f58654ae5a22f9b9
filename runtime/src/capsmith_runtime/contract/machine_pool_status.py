"""Status writers of machine pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from capsmith_runtime.contract.machine_pool_facts import PoolStatusWriter
from capsmith_runtime.contract.v1beta1.machine_pool_status import V1Beta1PoolStatus
from capsmith_runtime.contract.v1beta2.machine_pool_status import V1Beta2PoolStatus

_KNOWN: Final[tuple[PoolStatusWriter, ...]] = (V1Beta2PoolStatus(), V1Beta1PoolStatus())
POOL_STATUS_WRITERS: Final[Mapping[str, PoolStatusWriter]] = {
    known.contract: known for known in _KNOWN
}
"""By contract version."""
