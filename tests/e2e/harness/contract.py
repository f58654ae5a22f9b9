"""The contract versions that a core release can speak natively."""

from typing import Literal

ContractVersion = Literal["v1beta1", "v1beta2"]
