"""Return values that the reconcilers of all provider types share."""

from __future__ import annotations

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
"""The CRD allows 32 conditions, including Ready and Paused (ST-01)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Result for an operation that is still in progress, without error; reconcile again later."""

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    """Message of the Ready condition."""
    requeue_after: float | None = 10.0
    """Seconds until the next reconcile; None waits for a change of an object."""
    status: Any = field(default=None, kw_only=True)
    """Instance of the generated Status class, written at once, such as the id of an operation."""
    provider_id: str | None = field(default=None, kw_only=True)
    """Id of a machine that is being created, written at once; it never changes (IM-01)."""
    addresses: Sequence[Address] | None = field(default=None, kw_only=True)
    """Addresses of a machine so far; None keeps those in the status."""
    control_plane_endpoint: Endpoint | None = field(default=None, kw_only=True)
    """Endpoint of an infrastructure cluster, written at once; one that is set is kept (IC-02)."""
    failure_domains: Sequence[FailureDomain] | None = field(default=None, kw_only=True)
    """Failure domains of an infrastructure cluster so far; None keeps those in the status."""

    def __post_init__(self) -> None:
        check_reason(self.reason)
        check_machine(self.provider_id, self.addresses or ())
        check_failure_domains(self.failure_domains or ())


@dataclass(frozen=True, slots=True)
class Terminated:
    """Result for a machine that no longer exists or will never work, and must not be re-created.

    It stays provisioned and keeps its provider id; Ready becomes False, which its Machine shows as
    InfrastructureReady.  Health checks and control planes replace the Machine.  In contract
    v1beta1 it is a terminal failure (IM-11).
    """

    reason: str
    """Reason of the Ready condition in CamelCase."""
    message: str = ""
    """Message of the Ready condition."""
    status: Any = None
    """Instance of the generated Status class; None keeps the status fields as they are."""

    def __post_init__(self) -> None:
        check_reason(self.reason)


@dataclass(frozen=True, slots=True)
class Deleted:
    """Result of a deletion: the infrastructure no longer exists, or never existed."""


class NotAvailableError(Exception):
    """Raised if requested data are not available yet; handled like a returned Waiting."""

    waiting: Waiting
    """What the Ready condition reports, and when the call is repeated."""

    def __init__(self, waiting: Waiting) -> None:
        super().__init__(f"{waiting.reason}: {waiting.message}")
        self.waiting = waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Fields that the states of all kinds of objects share."""

    ready: bool = True
    """Status of the Ready condition."""
    reason: str = ""
    """Reason of the Ready condition in CamelCase; by default Ready or NotReady."""
    message: str = ""
    """Message of the Ready condition."""
    conditions: Sequence[Condition] = ()
    """Additional conditions.  A condition that you no longer return is removed."""
    status: Any = None
    """Instance of the generated Status class, if the kind has status fields of its own."""
    requeue_after: float | None = None
    """Seconds until the next reconcile; by default the sync period."""

    # Python 3.11 cannot call super() without arguments in a class with slots.
    def __post_init__(self) -> None:
        if self.reason:
            check_reason(self.reason)
        check_conditions(self.conditions)


def describe_unexpected_result(hook: Callable[..., object], result: object, *expected: type) -> str:
    """Return the error message for a result of the wrong type, without its value.

    The value may be secret.
    """
    names = " or ".join("None" if each is type(None) else each.__name__ for each in expected)
    found = "None" if result is None else type(result).__name__
    return f"{hook.__qualname__} must return {names}, not {found}"


def check_machine(provider_id: str | None, addresses: Sequence[Address]) -> None:
    """Raise ValueError for values of a machine that the contract does not allow."""
    if provider_id is not None and not 1 <= len(provider_id) <= MAX_PROVIDER_ID:
        raise ValueError(f"provider_id must have 1 to {MAX_PROVIDER_ID} characters")
    if len(addresses) > MAX_ADDRESSES:
        raise ValueError(f"a machine may have at most {MAX_ADDRESSES} addresses")


def check_failure_domains(domains: Sequence[FailureDomain]) -> None:
    """Raise ValueError for failure domains that the contract does not allow."""
    names = [domain.name for domain in domains]
    if len(names) > MAX_FAILURE_DOMAINS or len(set(names)) < len(names):
        raise ValueError(f"failure_domains must be at most {MAX_FAILURE_DOMAINS}, each name once")


def check_conditions(conditions: Sequence[Condition]) -> None:
    """Raise ValueError for conditions of the author that the contract does not allow."""
    types = [condition.type for condition in conditions]
    if len(types) > MAX_CONDITIONS or len(set(types)) < len(types):
        raise ValueError(f"conditions must be at most {MAX_CONDITIONS}, each type once")
    for reserved in (READY_CONDITION, PAUSED_CONDITION):
        if reserved in types:
            raise ValueError(f"condition {reserved} is written for you: use ready and reason")
