"""Return values that the reconcilers of all provider types share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from capsmith_runtime.contract.constants import PAUSED_CONDITION, READY_CONDITION
from capsmith_runtime.contract.model import (
    Address,
    Condition,
    check_reason,
)

MAX_ADDRESSES = 256
MAX_PROVIDER_ID = 512
MAX_CONDITIONS = 30
"""The CRD allows 32 conditions, including Ready and Paused (ST-01)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """The operation is still in progress, without an error; reconcile again later."""

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    requeue_after: float | None = 10.0
    """Seconds until the next reconcile; None waits for a change of an object."""
    status: Any = field(default=None, kw_only=True)
    """Instance of the generated Status class, written at once, such as the id of an operation."""
    provider_id: str | None = field(default=None, kw_only=True)
    """Id of a machine that is being created, written at once; it never changes (IM-01)."""
    addresses: Sequence[Address] | None = field(default=None, kw_only=True)
    """Addresses of a machine so far; None keeps those in the status."""

    def __post_init__(self) -> None:
        check_reason(self.reason)
        check_machine(self.provider_id, self.addresses or ())


@dataclass(frozen=True, slots=True)
class Terminated:
    """The machine no longer exists, or never works again, and must not be created a second time.

    It stays provisioned and keeps its provider id; Ready becomes False, which its Machine shows as
    InfrastructureReady.  Health checks and control planes replace the Machine.  In contract
    v1beta1 it is a terminal failure (IM-11).
    """

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    status: Any = None
    """Instance of the generated Status class; None keeps the status fields as they are."""

    def __post_init__(self) -> None:
        check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Deleted:
    """The infrastructure no longer exists, or never existed."""


class NotAvailableError(Exception):
    """Requested data are not available yet; handled like a returned Waiting."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(f"{waiting.reason}: {waiting.message}")
        self.waiting = waiting


class State(Protocol):
    """Attributes that all states of reconcilers share."""

    @property
    def ready(self) -> bool:
        """Return the status of the Ready condition."""
        ...

    @property
    def reason(self) -> str:
        """Return the reason of the Ready condition; empty for the default."""
        ...

    @property
    def message(self) -> str:
        """Return the message of the Ready condition."""
        ...

    @property
    def conditions(self) -> Sequence[Condition]:
        """Return additional conditions."""
        ...

    @property
    def requeue_after(self) -> float | None:
        """Return the seconds until the next reconcile."""
        ...


def unexpected_result(hook: Callable[..., object], result: object, *expected: type) -> str:
    """Return the message about a result of the wrong type; its value may be secret."""
    names = " or ".join("None" if each is type(None) else each.__name__ for each in expected)
    found = "None" if result is None else type(result).__name__
    return f"{hook.__qualname__} must return {names}, not {found}"


def check_machine(provider_id: str | None, addresses: Sequence[Address]) -> None:
    """Raise ValueError for values of a machine that cannot be written."""
    if provider_id is not None and not 1 <= len(provider_id) <= MAX_PROVIDER_ID:
        raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
    if len(addresses) > MAX_ADDRESSES:
        raise ValueError(f"a machine may have at most {MAX_ADDRESSES} addresses")


def check_conditions(conditions: Sequence[Condition]) -> None:
    """Raise ValueError for conditions of the author that cannot be written."""
    types = [condition.type for condition in conditions]
    if len(types) > MAX_CONDITIONS or len(set(types)) < len(types):
        raise ValueError(f"conditions must be at most {MAX_CONDITIONS}, each type once")
    for reserved in (READY_CONDITION, PAUSED_CONDITION):
        if reserved in types:
            raise ValueError(f"condition {reserved} is written for you: use ready and reason")
