"""Names that Cluster API defines: groups, kinds, labels, annotations, conditions and reasons."""

from __future__ import annotations

from typing import Final

CORE_GROUP: Final = "cluster.x-k8s.io"
CLUSTER_KIND: Final = "Cluster"
MACHINE_KIND: Final = "Machine"
MACHINE_POOL_KIND: Final = "MachinePool"
IPAM_GROUP: Final = "ipam.cluster.x-k8s.io"
CLAIM_KIND: Final = "IPAddressClaim"
ADDRESS_KIND: Final = "IPAddress"

CLUSTER_NAME_LABEL: Final = "cluster.x-k8s.io/cluster-name"
CONTROL_PLANE_LABEL: Final = "cluster.x-k8s.io/control-plane"
WATCH_FILTER_LABEL: Final = "cluster.x-k8s.io/watch-filter"

PAUSED_ANNOTATION: Final = "cluster.x-k8s.io/paused"
MANAGED_BY_ANNOTATION: Final = "cluster.x-k8s.io/managed-by"
"""Annotation that marks an object as externally managed, regardless of its value (IC-15)."""
DELETE_FOR_MOVE_ANNOTATION: Final = "clusterctl.cluster.x-k8s.io/delete-for-move"

OBSERVED_GENERATION: Final = "observedGeneration"
"""Name of the feature that adds the field ``observedGeneration`` to a kind's status (CRD-14)."""

READY_CONDITION: Final = "Ready"
PAUSED_CONDITION: Final = "Paused"
OWNER_REMEDIATED_CONDITION: Final = "OwnerRemediated"

REASON_READY: Final = "Ready"
REASON_NOT_READY: Final = "NotReady"
REASON_DELETING: Final = "Deleting"
REASON_PAUSED: Final = "Paused"
REASON_NOT_PAUSED: Final = "NotPaused"
REASON_INTERNAL_ERROR: Final = "InternalError"
REASON_INVALID_SPEC: Final = "InvalidSpec"
REASON_INVALID_RESULT: Final = "InvalidResult"
REASON_ACCOUNT_CHANGED: Final = "AccountChanged"
REASON_PROVIDER_ID_CHANGED: Final = "ProviderIDChanged"
REASON_EXTERNAL_ID_TAKEN: Final = "ExternalIDTaken"
REASON_PROVIDER_ID_TAKEN: Final = "ProviderIDTaken"
REASON_TERMINATION_HELD: Final = "TerminationHeld"
REASON_CLUSTER_NOT_FOUND: Final = "ClusterNotFound"
REASON_TOO_MANY_INSTANCES: Final = "TooManyInstances"
REASON_WAITING_FOR_INFRASTRUCTURE: Final = "WaitingForClusterInfrastructureReady"
REASON_WAITING_FOR_BOOTSTRAP: Final = "WaitingForBootstrapData"
REASON_IDENTITY_NOT_FOUND: Final = "IdentityNotFound"
REASON_IDENTITY_NOT_ALLOWED: Final = "IdentityNotAllowed"
REASON_IDENTITY_CHAIN_INVALID: Final = "IdentityChainInvalid"
REASON_SECRET_NOT_FOUND: Final = "SecretNotFound"
REASON_SECRET_INCOMPLETE: Final = "SecretIncomplete"
