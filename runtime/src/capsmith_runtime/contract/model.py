"""Values that are the same in all contract versions.

The author's code creates these values; :mod:`.v1beta1` and :mod:`.v1beta2` define their format in
spec and status.  Each class rejects values that Cluster API would reject only later, when the cause
is harder to find.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from capsmith_runtime.errors import check_reason

Object = Mapping[str, Any]
"""A Kubernetes object as sent by the API server; always treated as read-only."""

AddressType = Literal["Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"]
"""Type of a machine's address."""
ADDRESS_TYPES: Final = ("Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS")
Severity = Literal["Info", "Warning", "Error"]

MAX_MESSAGE: Final = 4096
_CONDITION_TYPE: Final = re.compile(
    r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
)


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """A reference in one of core's objects; it contains no API version."""

    group: str
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Address of a cluster's control plane (IC-02)."""

    host: str
    """Host name or IP address, 1 to 512 characters long."""
    port: int = 6443
    """Port number from 1 to 65535."""

    def __post_init__(self) -> None:
        _check_length("Endpoint.host", self.host, 512)
        if not 1 <= self.port <= 65535:
            raise ValueError(f"Endpoint.port must be between 1 and 65535, not {self.port}")


@dataclass(frozen=True, slots=True)
class FailureDomain:
    """A failure domain of the infrastructure (IC-08)."""

    name: str
    """Name of the failure domain, 1 to 256 characters long."""
    control_plane: bool = True
    """Whether control plane machines may be created in the failure domain."""
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Further information for users, such as the region."""

    def __post_init__(self) -> None:
        _check_length("FailureDomain.name", self.name, 256)


@dataclass(frozen=True, slots=True)
class Address:
    """A single address of a machine (IM-08)."""

    type: AddressType
    """Type of the address; creating an Address with an unknown type raises ValueError."""
    address: str
    """The host name or IP address, 1 to 256 characters long."""

    def __post_init__(self) -> None:
        if self.type not in ADDRESS_TYPES:
            raise ValueError(f"Address.type must be one of {ADDRESS_TYPES}, not {self.type!r}")
        _check_length("Address.address", self.address, 256)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A condition without times and generations, which status writers add."""

    type: str
    """Type of the condition; the runtime writes ``Ready`` and ``Paused`` itself."""
    status: bool | None
    """Status of the condition, or None for Unknown."""
    reason: str
    """Reason in CamelCase; must not be empty."""
    message: str = ""
    """Message for users. Keep it deterministic, because each change causes a write (ST-06)."""
    severity: Severity = "Warning"
    """Severity while the condition is False; written only in contract v1beta1."""

    def __post_init__(self) -> None:
        check_reason(self.reason)
        if not _CONDITION_TYPE.fullmatch(self.type):
            raise ValueError(f"{self.type!r} is not a condition type")


def shorten_message(message: str) -> str:
    """Return the message, cut to the length that a condition can hold."""
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 3] + "..."


def _check_length(what: str, text: str, limit: int) -> None:
    if not 1 <= len(text) <= limit:
        raise ValueError(f"{what} must have 1 to {limit} characters, not {len(text)}")
