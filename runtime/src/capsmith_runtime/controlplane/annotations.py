"""State that a control plane keeps in annotations, where it survives crashes and moves.

Only facts that cannot be observed in the cluster are recorded here; everything else is read again
on each reconcile.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final, TypeVar

from capsmith_runtime.api.serialization import DecodingError, decode
from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.control_plane import PRE_TERMINATE_PREFIX, ControlPlaneMachine
from capsmith_runtime.contract.model import Object

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Annotations:
    """Annotation names for a control plane kind and its objects (CP-37)."""

    domain: str
    """Prefix of the names, such as ``acmecontrolplane.controlplane.cluster.x-k8s.io``."""

    @property
    def pending_machine(self) -> str:
        """Return the name of the control plane annotation that names the Machine being created."""
        return f"{self.domain}/pending-machine"

    @property
    def remediation_in_progress(self) -> str:
        """Return the name of the control plane annotation that names the Machine being replaced."""
        return f"{self.domain}/remediation-in-progress"

    @property
    def remediation_for(self) -> str:
        """Return the name of the annotation on a new Machine that names the Machine it replaces."""
        return f"{self.domain}/remediation-for"

    @property
    def added(self) -> str:
        """Return the name of the Machine annotation that shows that ``after_add`` has completed."""
        return f"{self.domain}/added"

    @property
    def propagated(self) -> str:
        """Return the name of the annotation that records metadata from the machine template."""
        return f"{self.domain}/propagated"

    @property
    def bootstrap_spec(self) -> str:
        """Return the name of the annotation with the digest of a bootstrap config's first spec."""
        return f"{self.domain}/bootstrap-spec"

    @property
    def pre_terminate_hook(self) -> str:
        """Return the name of the Machine annotation that delays the server's deletion (SM-05)."""
        return PRE_TERMINATE_PREFIX + self.domain.partition(".")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMachine:
    """A record of a Machine, written before its creation so that no object is created twice."""

    name: str
    domain: str | None
    infrastructure: str
    """Kind and group of the infrastructure template."""
    template: str
    """Name of the infrastructure template."""
    bootstrap_spec: str
    """Digest of the bootstrap spec."""
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationData:
    """A Machine that was deleted because it was unhealthy, and the number of successive retries."""

    machine: str
    time: str
    """Time of the deletion in RFC 3339."""
    retries: int


def digest(spec: Object) -> str:
    """Return a digest of a spec; the order of the spec's keys does not matter."""
    text = json.dumps(spec, sort_keys=True, separators=(",", ":"))
    # Digests are recorded in annotations: a digest in another format would match no existing one.
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def encode(record: PendingMachine | RemediationData) -> str:
    """Return ``record`` as an annotation value, which the ``read`` functions decode."""
    return json.dumps(asdict(record), sort_keys=True, separators=(",", ":"))


def read_pending_machine(
    values: Mapping[str, str], annotations: Annotations
) -> PendingMachine | None:
    """Return the Machine stored in the annotation, or None if it is missing or unreadable."""
    return _decoded(PendingMachine, values.get(annotations.pending_machine))


def read_remediation_data(values: Mapping[str, str], annotation: str) -> RemediationData | None:
    """Return the remediation stored in ``annotation``, or None if it is missing or unreadable."""
    return _decoded(RemediationData, values.get(annotation))


def _decoded(cls: type[T], text: str | None) -> T | None:
    record = metadata.parse_object(text)
    try:
        # Another release may have written other fields, and users can edit annotations.
        return decode(cls, record, "record") if record is not None else None
    except DecodingError:
        return None


MIN_HEALTHY_SECONDS: Final = 3600
"""Seconds after which another failure of a replacement no longer counts as a retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemediationStrategy:
    """How unhealthy Machines are replaced, according to a control plane's ``spec.remediation``."""

    max_retry: int | None = None
    """Maximum number of retries, or None if unlimited."""
    retry_period_seconds: int = 0
    min_healthy_seconds: int = MIN_HEALTHY_SECONDS


@dataclass(frozen=True, slots=True)
class RemediationDelay:
    """The reason why a Machine must not be replaced yet, and the seconds to wait.

    The message is empty if the Machine may be replaced.
    """

    message: str = ""
    seconds: float | None = None


def read_remediation_strategy(obj: Object) -> RemediationStrategy:
    """Return the settings in a control plane's ``spec.remediation``."""
    spec = metadata.mapping(obj, "spec", "remediation")
    min_healthy = _integer(spec, "minHealthyPeriodSeconds")
    return RemediationStrategy(
        max_retry=_integer(spec, "maxRetry"),
        retry_period_seconds=_integer(spec, "retryPeriodSeconds") or 0,
        min_healthy_seconds=MIN_HEALTHY_SECONDS if min_healthy is None else min_healthy,
    )


def find_remediation_delay(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationDelay:
    """Return why a Machine must not be replaced yet; the message is empty if it may be.

    A message without ``seconds`` means that the maximum number of retries has been reached: waiting
    does not help.
    """
    last = _last_remediation(machine, annotation, strategy, now)
    if last is None:
        return RemediationDelay()
    if strategy.max_retry is not None and last.retries >= strategy.max_retry:
        return RemediationDelay(
            f"was replaced {last.retries} times without success, spec.remediation.maxRetry"
        )
    elapsed = (now - (times.parse_time(last.time) or now)).total_seconds()
    period = strategy.retry_period_seconds
    if elapsed < period:
        message = f"replaced {last.machine} less than {period} s ago"
        return RemediationDelay(message, period - elapsed)
    return RemediationDelay()


def start_remediation(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationData:
    """Return the record of a remediation that starts at ``now``."""
    last = _last_remediation(machine, annotation, strategy, now)
    # The replaced Machine carries the record of its own predecessor, which links the attempts.
    retries = 0 if last is None else last.retries + 1
    return RemediationData(machine=machine.name, time=times.format_time(now), retries=retries)


def _last_remediation(
    machine: ControlPlaneMachine, annotation: str, strategy: RemediationStrategy, now: datetime
) -> RemediationData | None:
    """Return the remediation that created the Machine.

    Returns None if there is none or it is older than ``min_healthy_seconds``.
    """
    last = read_remediation_data(machine.annotations, annotation)
    since = times.parse_time(last.time) if last is not None else None
    # Compared as numbers: users write both, and a sum of times may be after the year 9999.
    if since is None or (now - since).total_seconds() >= strategy.min_healthy_seconds:
        return None
    return last


def _integer(spec: Mapping[str, object], name: str) -> int | None:
    value = spec.get(name)
    return value if isinstance(value, int) else None
