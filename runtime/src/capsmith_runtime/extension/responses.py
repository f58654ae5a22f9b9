"""Results of hook methods.

Core writes messages into conditions, and reconciles when they change. The same state must therefore
always give the same message, without times, counters or object addresses (RX-06).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from capsmith_runtime.contract.model import Object, shorten_message

MAX_SECONDS: Final = 2**31 - 1


class HookError(Exception):
    """An exception that a hook raises to reject a request.

    Core logs the message, and since v1.14 also writes it into conditions.  The message must
    therefore always be the same for the same rejection, and must not contain secrets, times or
    other systems' error messages (RX-10).
    """


@dataclass(frozen=True, slots=True)
class Proceed:
    """Lets core continue; as the result of UpdateMachine, reports that the update is complete."""

    message: str = ""
    """Message for users, or an empty string for no message."""


@dataclass(frozen=True, slots=True)
class RetryAfter:
    """Makes core call again later.

    As the result of UpdateMachine, reports an update in progress.
    """

    seconds: int
    """Seconds until core calls again, at least 1."""
    message: str = ""
    """Message for users: what the hook is waiting for."""

    def __post_init__(self) -> None:
        if not 1 <= self.seconds <= MAX_SECONDS:
            raise ValueError(f"RetryAfter.seconds must be at least 1, not {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableDefinition:
    """A variable that users can set in a Cluster's ``spec.topology.variables``."""

    name: str
    """Name of the variable, 1 to 256 characters long."""
    schema: Mapping[str, Any]
    """OpenAPI v3 schema, as in a ClusterClass's ``openAPIV3Schema``."""
    required: bool = False
    """Whether each Cluster of the class must set the variable."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= 256:
            raise ValueError("VariableDefinition.name must have 1 to 256 characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradePlan:
    """The Kubernetes versions that an upgrade must pass through, in ascending order."""

    control_plane: Sequence[str]
    """Versions of the control plane in ascending order; the last one is the target version."""
    workers: Sequence[str] = ()
    """Versions of the workers in ascending order, or empty to let core take the shortest path.

    The version skew policy limits which paths are possible.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class InPlace:
    """The changes that can be made to a running machine, as JSON pointers into its objects.

    A pointer also covers everything below it. If a change is in no extension's response, core
    replaces the machine.
    """

    machine: Sequence[str] = ()
    """Pointers into the Machine or MachineSet.

    The version is ``/spec/version`` in a Machine, and ``/spec/template/spec/version`` in a
    MachineSet.
    """
    infrastructure: Sequence[str] = ()
    """Pointers into the infrastructure machine or its template."""
    bootstrap: Sequence[str] = ()
    """Pointers into the bootstrap configuration or its template."""


def encode_decision(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the response fields that let core continue or make it wait."""
    seconds = result.seconds if isinstance(result, RetryAfter) else 0
    return {**encode_message(result), "retryAfterSeconds": seconds}


def encode_message(result: Proceed | RetryAfter) -> dict[str, Any]:
    """Return the response field with the message, or no field if the message is empty."""
    # Core writes it into a condition, which cannot hold more.
    message = shorten_message(result.message.encode(errors="replace").decode())
    return {"message": message} if message else {}


@dataclass(frozen=True, slots=True)
class Codec:
    """Converts one hook's requests from JSON, and its results to JSON."""

    read: Callable[[Object], Any]
    """Function that returns the hook method's argument from a request's JSON."""
    results: tuple[type, ...]
    """The types that the hook method may return."""
    write: Callable[[Any, Any], dict[str, Any]]
    """Function that returns the response fields, except the status, for a result and a request."""
