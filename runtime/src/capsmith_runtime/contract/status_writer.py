"""Facts that a provider reports about its objects, independent of the contract version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from capsmith_runtime.contract.core import CoreReader
from capsmith_runtime.contract.model import Address, Condition, Endpoint, FailureDomain, Object

READY_FIELD: Final = "ready"
"""Feature name for kinds that keep ``status.ready`` in addition to ``initialization``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What a reconcile learned about a cluster's infrastructure, for its spec and status."""

    endpoint: Endpoint | None
    failure_domains: Sequence[FailureDomain]
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields that only this kind has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """What a reconcile learned about an infrastructure machine, for its spec and status."""

    provider_id: str
    addresses: Sequence[Address]
    failure_domain: str | None
    interruptible: bool
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Status fields that only this kind has."""


class ConditionWriter(Protocol):
    """Protocol for merging conditions into a status, in one API version's format."""

    def merge_conditions(
        self, obj: Object, status: Object, wanted: Sequence[Condition], now: str
    ) -> dict[str, Any]:
        """Return ``status`` with the ``wanted`` conditions merged in.

        ``now`` is a time in RFC 3339.
        """
        ...


class StatusWriter(ConditionWriter, Protocol):
    """Writes facts and conditions in one contract version's format.

    The methods return the complete new ``spec`` or ``status``, not a patch: other fields stay as
    they are. ``features`` names the optional parts of the contract that the kind implements.
    """

    @property
    def contract(self) -> str:
        """Return the contract version: ``v1beta1`` or ``v1beta2``."""
        ...

    def add_failure(self, status: Object, reason: str, message: str) -> dict[str, Any]:
        """Return the status with a terminal failure, if the contract version has fields for it."""
        ...

    def remove_failure(self, status: Object) -> dict[str, Any]:
        """Return the status without the fields for terminal failures."""
        ...

    def is_provisioned(self, obj: Object) -> bool:
        """Return whether the status reports the object as provisioned.

        Once true, this is never reset (IC-05, IM-03).
        """
        ...

    def build_cluster_spec(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete spec with the observed values; a user's endpoint is kept."""
        ...

    def build_cluster_status(
        self, obj: Object, facts: ClusterFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status of a cluster with provisioned infrastructure; conditions are
        unchanged."""
        ...

    def set_failure_domains(
        self, status: Object, domains: Sequence[FailureDomain], features: Set[str]
    ) -> dict[str, Any]:
        """Return the status with these failure domains, or without the field if there are none."""
        ...

    def build_machine_spec(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the machine's complete spec with its provider id and other observed values."""
        ...

    def build_machine_status(
        self, obj: Object, facts: MachineFacts, features: Set[str]
    ) -> dict[str, Any]:
        """Return the complete status of a provisioned machine; conditions are unchanged."""
        ...


class ContractFormat(NamedTuple):
    """One contract version's formats: a reader for core's objects, and a writer for status."""

    reader: CoreReader
    """Reads core's objects in the API version with the same name."""
    writer: StatusWriter


def set_or_drop(status: dict[str, Any], key: str, value: Any) -> None:
    """Set ``status[key]``, or remove it if ``value`` is empty."""
    if value is None or value in ("", [], {}):
        status.pop(key, None)
    else:
        status[key] = value


def set_feature_field(status: Object, field: str, value: Any, features: Set[str]) -> dict[str, Any]:
    """Return the status, with ``field`` set if ``features`` contains its name."""
    new = dict(status)
    if field in features:
        set_or_drop(new, field, value)
    return new


def set_extra_fields(status: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Set the kind's own fields in ``status``, and return it; empty values remove their fields."""
    for key, value in extra.items():
        set_or_drop(status, key, value)
    return status


def build_addresses(addresses: Sequence[Address]) -> list[dict[str, str]]:
    """Return the value of ``status.addresses``, which both contract versions share (IM-08)."""
    return [{"type": address.type, "address": address.address} for address in addresses]


def add_endpoint(obj: Object, endpoint: Endpoint | None, features: Set[str]) -> dict[str, Any]:
    """Return the spec with ``endpoint``, unless the spec already has a host and a port (IC-02).

    If the spec has only a host, the port is added.  If it has only a port, the host is added,
    unless the port differs from that of ``endpoint``.
    """
    spec = dict(obj.get("spec") or {})
    endpoint_fields = spec.get("controlPlaneEndpoint") or {}
    host, port = endpoint_fields.get("host"), endpoint_fields.get("port")
    if endpoint is None or "controlPlaneEndpoint" not in features or (host and port):
        return spec
    # A given port without a host stays as it is if it differs from the observed port.
    if host or port in (None, 0, endpoint.port):
        spec["controlPlaneEndpoint"] = {"host": host or endpoint.host, "port": endpoint.port}
    return spec
