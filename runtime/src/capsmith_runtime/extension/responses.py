"""Results of hook methods.

Core writes messages into conditions, and reconciles when they change.  The same state must
therefore give the same message: no times, counters or object addresses (RX-06).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract.model import Object

MAX_SECONDS: Final = 2**31 - 1


class HookError(Exception):
    """Raise this in a hook to refuse a request.

    Core logs the message, and since v1.14 also writes it into conditions.  The same refusal
    therefore needs the same message, and a message must contain neither secrets, nor times, nor
    error messages of other systems (RX-10).
    """


@dataclass(frozen=True, slots=True)
class Proceed:
    """Lets core continue; as the result of UpdateMachine, reports that the update is complete."""

    message: str = ""
    """A message for users; optional."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Makes core call again later; as the result of UpdateMachine, an update is in progress."""

    seconds: int
    """Seconds until core calls again, at least 1."""
    message: str = ""
    """What the hook is waiting for."""

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= MAX_SECONDS:
            raise ValueError(f"RetryAfter.seconds must be at least 1, not {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableDefinition:
    """A variable that users can set in ``spec.topology.variables`` of a Cluster."""

    name: str
    """From 1 to 256 characters."""
    schema: Mapping[str, Any]
    """An OpenAPI v3 schema, as in ``openAPIV3Schema`` of a ClusterClass."""
    required: bool = False
    """Whether each Cluster of the class must set it."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 256:
            raise ValueError("VariableDefinition.name must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """The Kubernetes versions through which an upgrade has to pass, in ascending order."""

    control_plane: Sequence[str]
    """Each greater than the one before; the last is the version to upgrade to."""
    workers: Sequence[str] = ()
    """If empty, core takes the shortest path that the version skew policy allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """The changes that a running machine can take, as JSON pointers into its objects.

    A pointer includes everything below it.  Core replaces the machine if any change is not
    included by some extension.
    """

    machine: Sequence[str] = ()
    """``/spec/version`` of a Machine; ``/spec/template/spec/version`` of a MachineSet."""
    infrastructure: Sequence[str] = ()
    """Pointers into the infrastructure machine, or its template."""
    bootstrap: Sequence[str] = ()
    """Pointers into the bootstrap configuration, or its template."""


def encode_decision(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the fields of a response that lets core continue or makes it wait."""
    seconds = result.seconds if isinstance(result, RetryAfter) else 0
    return {**encode_message(result), "retryAfterSeconds": seconds}


def encode_message(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the field with the message; no field if the message is empty."""
    return {"message": result.message} if result.message else {}


@dataclass(frozen=True, slots=True)
class Codec:
    """Converts requests and results of one hook from and to JSON."""

    read: Callable[[Object], Any]
    """Returns the argument of the hook method, from the JSON of the request."""
    results: tuple[type, ...]
    """The types that the hook method may return."""
    write: Callable[[Any, Any], dict[str, Any]]
    """Returns the fields of the response except its status, from result and request."""
