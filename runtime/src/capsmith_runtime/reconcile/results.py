"""Return values shared by the reconcilers of all provider types."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from capsmith_runtime.contract.constants import PAUSED_CONDITION, READY_CONDITION
from capsmith_runtime.contract.model import Address, Condition, Endpoint, FailureDomain
from capsmith_runtime.errors import check_reason

MAX_ADDRESSES = 256
MAX_FAILURE_DOMAINS = 100
MAX_PROVIDER_ID = 512
MAX_CONDITIONS = 30
"""Maximum number of conditions that the author's code sets.

The CRD allows 32, including Ready and Paused (ST-01).
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Result of an operation that is in progress without an error; it is retried later.

    The Ready condition becomes False. For infrastructure that exists already, it becomes Unknown
    unless it was False, because waiting does not tell whether a machine works (IM-03).
    """

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    """Message of the Ready condition."""
    requeue_after: float | None = 10.0
    """Seconds until the next reconcile, or None to wait for a change to this or a related object.
    """
    status: Any = field(default=None, kw_only=True)
    """Instance of the generated Status class, for example with an operation's id.

    It is written immediately.
    """
    provider_id: str | None = field(default=None, kw_only=True)
    """Id of a machine that is being created; written immediately, and must never change (IM-01)."""
    addresses: Sequence[Address] | None = field(default=None, kw_only=True)
    """Known addresses of a machine, or None to keep the addresses in the status."""
    control_plane_endpoint: Endpoint | None = field(default=None, kw_only=True)
    """An infrastructure cluster's endpoint; written immediately unless one is set (IC-02)."""
    failure_domains: Sequence[FailureDomain] | None = field(default=None, kw_only=True)
    """Known failure domains of an infrastructure cluster, or None to keep those in the status."""

    def __post_init__(self) -> None:
        check_reason(self.reason)
        check_requeue(self.requeue_after)
        check_machine(self.provider_id, self.addresses or ())
        check_failure_domains(self.failure_domains or ())


@dataclass(frozen=True, slots=True)
class Terminated:
    """Result for a machine that is gone or will never work, and must not be created again.

    The machine stays provisioned and keeps its provider id. Its Ready condition becomes False,
    which the Machine shows as InfrastructureReady. Health checks and control planes replace the
    Machine. In contract v1beta1 the result is a terminal failure (IM-11).

    The result takes effect only if a second call, by default 30 seconds later, returns it again. It
    is held back while more than a third of the cluster's or the identity's machines disappear.
    """

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    """Message of the Ready condition."""
    status: Any = None
    """Instance of the generated Status class, or None to keep the status fields unchanged."""

    def __post_init__(self) -> None:
        check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of a deletion: the infrastructure no longer exists, or never existed."""


class NotAvailableError(Exception):
    """Raised if requested data are not available yet; handled like a returned Waiting."""

    waiting: Waiting
    """The Waiting with the reason for the Ready condition and the time of the next call."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(f"{waiting.reason}: {waiting.message}")
        self.waiting = waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Base class for the states that reconcilers return: the fields that all kinds share."""

    ready: bool = True
    """Status of the Ready condition."""
    reason: str = ""
    """Reason of the Ready condition in CamelCase, or an empty string for Ready or NotReady."""
    message: str = ""
    """Message of the Ready condition, for users."""
    conditions: Sequence[Condition] = ()
    """Additional conditions; a condition that is no longer returned is removed from the object."""
    status: Any = None
    """Instance of the generated Status class, or None to leave its fields unchanged."""
    requeue_after: float | None = None
    """Seconds until the next reconcile, or None for the sync period."""

    # Python 3.11 cannot call super() without arguments in a class with slots.
    def __post_init__(self) -> None:
        if self.reason:
            check_reason(self.reason)
        check_requeue(self.requeue_after)
        check_conditions(self.conditions)


def describe_unexpected_result(hook: Callable[..., object], result: object, *expected: type) -> str:
    """Return the error message for a result of the wrong type.

    It does not contain the result's value, which may be secret.
    """
    names = " or ".join("None" if each is type(None) else each.__name__ for each in expected)
    found = "None" if result is None else type(result).__name__
    return f"{hook.__qualname__} must return {names}, not {found}"


def check_requeue(seconds: float | None) -> None:
    """Raise ValueError if a delay is not a number, which would count as no delay."""
    if seconds is not None and math.isnan(seconds):
        raise ValueError("requeue_after is not a number")


def check_machine(provider_id: str | None, addresses: Sequence[Address]) -> None:
    """Raise ValueError if the contract does not allow a machine's provider id or addresses."""
    if provider_id is not None and not 1 <= len(provider_id) <= MAX_PROVIDER_ID:
        raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
    if len(addresses) > MAX_ADDRESSES:
        raise ValueError(f"a machine may have at most {MAX_ADDRESSES} addresses")


def check_failure_domains(domains: Sequence[FailureDomain]) -> None:
    """Raise ValueError if the contract does not allow the failure domains."""
    names = [domain.name for domain in domains]
    if len(names) > MAX_FAILURE_DOMAINS or len(set(names)) < len(names):
        raise ValueError(f"failure_domains must be at most {MAX_FAILURE_DOMAINS}, each name once")


def check_conditions(conditions: Sequence[Condition]) -> None:
    """Raise ValueError if the contract does not allow the author's conditions."""
    types = [condition.type for condition in conditions]
    if len(types) > MAX_CONDITIONS or len(set(types)) < len(types):
        raise ValueError(f"conditions must be at most {MAX_CONDITIONS}, each type once")
    for reserved in (READY_CONDITION, PAUSED_CONDITION):
        if reserved in types:
            raise ValueError(f"condition {reserved} is written for you: use ready and reason")
