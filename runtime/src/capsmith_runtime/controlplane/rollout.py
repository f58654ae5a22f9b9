"""Decides whether a Machine is up to date, and explains why not (CP-20, CP-32)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from capsmith_runtime.contract import metadata, times
from capsmith_runtime.contract.control_plane import ControlPlaneMachine
from capsmith_runtime.contract.model import Object, ObjectRef
from capsmith_runtime.controlplane.annotations import digest

CLONED_FROM_NAME = "cluster.x-k8s.io/cloned-from-name"
CLONED_FROM_KIND = "cluster.x-k8s.io/cloned-from-groupkind"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutCriteria:
    """The settings that decide whether a Machine is up to date."""

    version: str
    """Version of Kubernetes; empty if the control plane's CRD has none."""
    template: ObjectRef
    """Reference to the infrastructure template."""
    bootstrap_spec: Object
    bootstrap_annotation: str
    """Name of the annotation with the digest of a configuration's original spec."""
    rollout_after: datetime | None = None
    certificates_expiry_seconds: float | None = None
    """Seconds by which a Machine is replaced before its certificates expire, or None for never."""


def find_outdated_reasons(
    machine: ControlPlaneMachine,
    criteria: RolloutCriteria,
    infrastructure: Object | None,
    bootstrap: Object | None,
    now: datetime,
) -> tuple[str, ...]:
    """Return the reasons to replace the Machine, or an empty tuple if it is up to date.

    A missing object, or one that is being deleted, is not a reason to replace the Machine.
    """
    reasons = []
    if criteria.version and machine.version != criteria.version:
        reasons.append(f"Version {machine.version}, {criteria.version} required")
    # The name of the template counts, not its content: another spec needs another template.
    if infrastructure is not None and _has_other_template(infrastructure, criteria.template):
        reasons.append(f"{infrastructure['kind']} was not created from {criteria.template.name}")
    if bootstrap is not None and _has_other_spec(bootstrap, criteria):
        reasons.append(f"{bootstrap['kind']} has a different spec")
    if _is_created_before(machine, criteria.rollout_after, now):
        reasons.append("spec.rollout.after has passed")
    if _expires(machine, criteria.certificates_expiry_seconds, now):
        reasons.append("Certificates will expire soon")
    return tuple(reasons)


def find_next_rollout_seconds(
    machines: Sequence[ControlPlaneMachine], criteria: RolloutCriteria, now: datetime
) -> float | None:
    """Return the seconds until the next rollout that only time triggers, or None if none."""
    after, before = criteria.rollout_after, criteria.certificates_expiry_seconds
    left = [] if after is None else [(after - now).total_seconds()]
    if before is not None:
        # Numbers, because users write both: no time can be before the year 1.
        expiries = (times.parse_time(machine.certificates_expiry) for machine in machines)
        left += [(each - now).total_seconds() - before for each in expiries if each is not None]
    remaining = [seconds for seconds in left if seconds > 0]
    # One second later, so that the deadline has certainly passed.
    return min(remaining) + 1.0 if remaining else None


def _has_other_template(infrastructure: Object, template: ObjectRef) -> bool:
    annotations = metadata.annotations(infrastructure)
    name, kind = annotations.get(CLONED_FROM_NAME), annotations.get(CLONED_FROM_KIND)
    # Without the record, as on objects that another tool created, nothing shows that the template
    # was a different one.
    if name is None or kind is None:
        return False
    return (name, kind) != (template.name, f"{template.kind}.{template.group}")


def _has_other_spec(bootstrap: Object, criteria: RolloutCriteria) -> bool:
    """Return whether the configuration would now be created with another spec.

    Other controllers may write into the spec, and a new schema may have new defaults: neither
    causes the Machine to be replaced.
    """
    spec, desired = metadata.mapping(bootstrap, "spec"), criteria.bootstrap_spec
    if not _covers(spec, desired):
        return True
    created_from = metadata.annotations(bootstrap).get(criteria.bootstrap_annotation)
    # Fields beyond the desired ones were set by others, unless the desired spec had them once.
    return created_from not in (None, digest(desired)) and not _covers(desired, spec)


def _covers(value: object, desired: object) -> bool:
    """Return whether ``value`` contains everything in ``desired``."""
    if value is None:
        return not desired and desired in (None, {}, [])
    if isinstance(desired, Mapping):
        return isinstance(value, Mapping) and all(
            _covers(value.get(name), field) for name, field in desired.items()
        )
    if isinstance(desired, list) and isinstance(value, list):
        pairs = zip(value, desired, strict=False)
        return len(value) == len(desired) and all(_covers(a, b) for a, b in pairs)
    return value == desired


def _is_created_before(machine: ControlPlaneMachine, after: datetime | None, now: datetime) -> bool:
    created = times.parse_time(machine.created)
    # A time in the future triggers nothing yet; Machines created after it are already new.
    return after is not None and created is not None and created < after <= now


def _expires(machine: ControlPlaneMachine, seconds: float | None, now: datetime) -> bool:
    expiry = times.parse_time(machine.certificates_expiry)
    if expiry is None or seconds is None:
        return False
    return (expiry - now).total_seconds() <= seconds
