"""The formats of the contract versions that this copy of the library supports."""

from capsmith_runtime.contract.v1beta1 import V1BETA1
from capsmith_runtime.contract.v1beta2 import V1BETA2

__all__ = [
    "V1BETA1",
    "V1BETA2",
]
