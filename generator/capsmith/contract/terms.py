"""The words of contract data: what a rule, a field, a hook or a release may be.

Below the models of the files and what is made of them, so that neither needs the other for a word.
"""

from __future__ import annotations

from enum import StrEnum


class Level(StrEnum):
    """How binding a rule is, in the words of RFC 2119; INFO is not binding."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    INFO = "INFO"


class Origin(StrEnum):
    """Who says so."""

    CONTRACT = "contract"
    """A page of the contract: of a provider type, clusterctl, IPAM or runtime extensions."""
    OBSERVED = "observed"
    """The behaviour of Cluster API or Kubernetes; no page of the contract promises it."""
    ADVICE = "advice"
    """Neither: a habit, or good practice."""


class Weight(StrEnum):
    """The severity of a violation; the values are those of a finding's severity."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Proof(StrEnum):
    """The way in which a rule without a static check is verified."""

    BEHAVIOUR = "behaviour"
    """A test that drives the controller."""
    RUNTIME = "runtime"
    """An API server, Cluster API core or clusterctl."""


class EffectClass(StrEnum):
    """What a violation does under a release of core or clusterctl."""

    BREAKS = "breaks"
    """Core or clusterctl fails or misbehaves."""
    BREAKS_WHEN = "breaks-when"
    """It does under a condition."""
    ADVICE = "advice"
    """Nothing fails."""


class FieldOrigin(StrEnum):
    """Who names a field."""

    CONTRACT = "contract"
    """The contract, or core, which reads or writes it."""
    CAPSMITH = "capsmith"
    """Capsmith's API; the rule of the field is one that it helps to keep."""


class HookFamily(StrEnum):
    """The subject of hooks; each family has its own code."""

    TOPOLOGY = "topology"
    LIFECYCLE = "lifecycle"
    UPGRADE_PLAN = "upgrade-plan"
    IN_PLACE = "in-place"


class Where(StrEnum):
    """The part of an object into which a path leads."""

    OBJECT = "object"
    """Objects of the provider's kinds."""
    CORE = "core"
    """Objects of core's kinds that the provider writes."""
    CRD = "crd"
    METADATA = "metadata"
    """metadata.yaml."""


class ChangeKind(StrEnum):
    """How the new contract's field differs from the old one's."""

    MOVED = "moved"
    COPIED = "copied"
    """The old field stays beside the new one."""
    RETYPED = "retyped"
    """Of another JSON type or shape, and perhaps elsewhere."""
    NARROWED = "narrowed"
    """Same place and type; values that were fine are refused."""
    OPTIONAL = "optional"
    """Same place and type; may now be absent."""
    ADDED = "added"
    REMOVED = "removed"


class Conversion(StrEnum):
    """How a value gets from the old field to the new one."""

    AS_IS = "as-is"
    FLAG = "flag"
    """True stays, false becomes absent."""
    TEXT = "text"
    """Null and empty become absent."""
    EMPTY_OBJECT = "empty-object"
    """An object of empty values becomes absent."""
    EMPTY_LIST = "empty-list"
    MAP_TO_LIST = "map-to-list"
    CONDITIONS = "conditions"
    REFERENCE = "reference"
    """``apiVersion`` to ``apiGroup``; the namespace goes."""
    SECONDS = "seconds"
    """A duration as text to whole seconds."""
    COMPLEMENT = "complement"
    """The difference to the whole."""
    NONE = "none"
    """There is nothing to convert from, or to."""


class Actor(StrEnum):
    """The party that has to act; by default the generator."""

    GENERATOR = "generator"
    """Capsmith: schema and conversion follow from the data."""
    AUTHOR = "author"
    """The meaning changes, so the provider's code does."""
    USER = "user"


class Run(StrEnum):
    """Where a release is run."""

    CI = "ci"
    """All tests, for each change."""
    SHORT = "short"
    """The life of a cluster for each change, all tests every night."""
    NIGHTLY = "nightly"
    """All tests, every night."""
    SOURCE = "source"
    """Nowhere: what capsmith says of it is read from its source."""


class Permission(StrEnum):
    """What allows a request."""

    LABEL = "label"
    """The manager's own groups, or a ClusterRole of the provider that has the manager's label."""
    BINDING = "binding"
    """A ClusterRole of the provider that is bound to the manager."""
    OWN = "own"
    """The manager's own role; the provider grants nothing."""


class Shown(StrEnum):
    """The end-to-end test whose audit log has the requests."""

    LIFECYCLE = "lifecycle"
    TOPOLOGY = "topology"
    POOLS = "pools"
    KUBEADM = "kubeadm"
