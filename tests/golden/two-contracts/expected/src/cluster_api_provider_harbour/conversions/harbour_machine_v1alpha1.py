"""HarbourMachine between v1alpha1 and the hub, which is the storage version v1beta1.

Fields with the same name and type are copied.  Return the other fields here.  Fields that you leave
out are kept in an annotation and restored by the opposite conversion, but clients of the other
version do not see them.  tests/test_conformance.py checks that these functions lose nothing: each
field that one direction reads must be returned by the other.
"""

from __future__ import annotations

from .._generated.api import harbour_machine as hub
from .._generated.conversion import harbour_machine_v1alpha1 as v1alpha1


def spec_to_hub(spec: v1alpha1.Spec) -> v1alpha1.ChangedHubSpec:
    """Return the fields of v1beta1 that v1alpha1 lacks or has with another type."""
    return v1alpha1.ChangedHubSpec()


def spec_from_hub(spec: hub.HarbourMachineSpec) -> v1alpha1.ChangedSpec:
    """Return the fields of v1alpha1 that v1beta1 lacks or has with another type."""
    return v1alpha1.ChangedSpec()


def status_to_hub(status: v1alpha1.Status) -> v1alpha1.ChangedHubStatus:
    """Return the fields of v1beta1 that v1alpha1 lacks or has with another type."""
    return v1alpha1.ChangedHubStatus()


def status_from_hub(status: hub.HarbourMachineStatus) -> v1alpha1.ChangedStatus:
    """Return the fields of v1alpha1 that v1beta1 lacks or has with another type."""
    return v1alpha1.ChangedStatus()
