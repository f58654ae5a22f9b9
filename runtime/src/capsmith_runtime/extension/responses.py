"""Results of hook methods.

Core shows messages in conditions and reconciles when they change.  The same state must therefore
give the same message: no times, counters or object addresses (RX-06).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract.model import Object

MAX_SECONDS: Final = 2**31 - 1


class HookError(Exception):
    """The hook refuses.

    Core logs the message, and since v1.14 also writes it into conditions.  The same refusal
    therefore needs the same message, and a message must not contain secrets, times or the text of
    errors from other systems (RX-10).
    """


@dataclass(frozen=True, slots=True)
class Proceed:
    """Core may continue; from UpdateMachine: the update is complete."""

    message: str = ""
    """A message for users; optional."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Core has to wait and call again; from UpdateMachine: the update is in progress."""

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
    """The Kubernetes versions through which an upgrade has to go, in order."""

    control_plane: Sequence[str]
    """Each greater than the one before; the last is the version to upgrade to."""
    workers: Sequence[str] = ()
    """If empty, core takes the shortest path that the version skew policy allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """The changes that a running machine can take, as JSON pointers into the objects.

    A pointer includes everything below it.  Core replaces the machine if there is any change that
    no extension includes.
    """

    machine: Sequence[str] = ()
    """``/spec/version`` of a Machine; ``/spec/template/spec/version`` of a MachineSet."""
    infrastructure: Sequence[str] = ()
    """Pointers into the infrastructure machine, or its template."""
    bootstrap: Sequence[str] = ()
    """Pointers into the bootstrap configuration, or its template."""


def encode_decision(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the fields of a response that lets core continue, or makes it wait."""
    seconds = result.seconds if isinstance(result, RetryAfter) else 0
    return {**encode_message(result), "retryAfterSeconds": seconds}


def encode_message(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the field with the message, or no field if the message is empty."""
    return {"message": result.message} if result.message else {}


@dataclass(frozen=True, slots=True)
class Codec:
    """Conversion between JSON and the types of one hook."""

    read: Callable[[Object], Any]
    """Returns the argument of the hook method, from the JSON of the request."""
    results: tuple[type, ...]
    """The types that the hook method may return."""
    write: Callable[[Any, Any], dict[str, Any]]
    """Returns the fields of the response except its status, from result and request."""
