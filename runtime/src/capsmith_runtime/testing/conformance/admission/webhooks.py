"""Validators and defaulters accept the author's own objects, and defaults are stable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from capsmith_runtime.admission.controllers import AdmissionWebhook
from capsmith_runtime.admission.kinds import AdmittedKind
from capsmith_runtime.component import Component
from capsmith_runtime.contract.constants import CLUSTER_KIND, CLUSTER_NAME_LABEL
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.permissions import Permissions
from capsmith_runtime.testing.admission import create, default
from capsmith_runtime.testing.authored_objects import authored_objects
from capsmith_runtime.testing.conformance.authored import TEMPLATES
from capsmith_runtime.testing.conformance.base import Case, Conformance
from capsmith_runtime.testing.core import NAMESPACE
from capsmith_runtime.testing.provider import ProviderUnderTest
from capsmith_runtime.testing.schema_check import with_defaults


@dataclass(frozen=True, kw_only=True)
class AdmissionCase(Case):
    """A test case for one kind that has admission webhooks."""

    component: Component
    kind: AdmittedKind

    @property
    def id(self) -> str:
        """Return only the kind's name, because the case does not depend on core."""
        return self.kind.kind

    @property
    def kinds(self) -> Sequence[str]:
        """Return the kind, and also its template kind if templates are admitted."""
        return tuple(filter(None, (self.kind.kind, self.kind.template)))

    def objects(self) -> Iterator[JSON]:
        """Yield the kind's samples and templates, with the CRD's defaults.

        Objects whose spec has variables without a default are left out, because their values are
        unknown.
        """
        provider = self.provider
        folders = [*(f"{each}/samples" for each in provider.config), TEMPLATES]
        for obj in authored_objects(provider.repository, folders):
            if obj.get("kind") in self.kinds and "${" not in str(obj.get("spec")):
                group, _, version = str(obj.get("apiVersion")).rpartition("/")
                if group == self.kind.group:
                    schema = provider.manifests.schema(obj["kind"], version)
                    yield with_defaults(schema, {"spec": {}, **self._with_names(obj)})

    def _with_names(self, obj: JSON) -> JSON:
        """Return an object with the names that the API server requires of it."""
        metadata = dict(obj.get("metadata") or {})
        # Names in templates are variables that users set.
        if "${" in str(metadata.get("name")):
            metadata["name"] = self.kind.kind.lower()
        if self.provider.manifests.crd(obj["kind"])["spec"].get("scope") != "Cluster":
            metadata["namespace"] = NAMESPACE
        return {**obj, "metadata": metadata}

    def find_refusals(self, existing: Sequence[JSON] = ()) -> list[str]:
        """Return why objects are refused, while the API server has the ``existing`` objects.

        If there are ``existing`` objects, the checked objects belong to a Cluster.
        """
        watched = [watch.resource for watch in self.component.watches]
        permissions = Permissions(self.component.permissions, watched)
        objects = (_in_cluster(obj) if existing else obj for obj in self.objects())
        found = (create(self.kind, obj, existing, permissions).refusal for obj in objects)
        return [text for text in found if text]


def _in_cluster(obj: JSON) -> JSON:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), CLUSTER_NAME_LABEL: _CLUSTER}
    return {**obj, "metadata": {**metadata, "labels": labels}}


_CLUSTER: Final = "cluster"
_PROVISIONED: Final = {
    "initialization": {"infrastructureProvisioned": True, "controlPlaneInitialized": True}
}
_STATES: Final[Mapping[str, JSON]] = {
    "new": {},
    "provisioned": {"status": _PROVISIONED},
    "paused, as in a move": {"spec": {"paused": True}},
}
"""States of a Cluster in which users, core or clusterctl create its objects."""


class AdmissionConformance(Conformance):
    """Base class for scenarios that run for each kind with webhooks."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[AdmissionCase]:
        """Return a case for each kind that has webhooks."""
        return [
            AdmissionCase(provider=provider, core_version="", component=component, kind=kind)
            for component, webhook in provider.groups_of(AdmissionWebhook)
            for kind in webhook.kinds
        ]


class TestAdmissionValidation(AdmissionConformance):
    """The author's own objects are accepted."""

    def test_samples_and_templates_are_accepted(self, case: AdmissionCase) -> None:
        objects = list(case.objects())

        assert objects, f"no samples folder has a {case.kind.kind}: the tests need one"
        assert case.find_refusals() == []

    def test_the_state_of_the_cluster_refuses_nothing(self, case: AdmissionCase) -> None:
        """Objects are accepted whether their Cluster is new, provisioned or paused.

        The same objects are accepted without their Cluster, and before any other object exists:
        ``clusterctl move`` creates existing objects again, in any order, with a paused Cluster.
        """
        for state, changes in _STATES.items():
            cluster = {
                "apiVersion": "cluster.x-k8s.io/v1beta2",
                "kind": CLUSTER_KIND,
                "metadata": {"namespace": NAMESPACE, "name": _CLUSTER},
                **changes,
            }
            assert case.find_refusals([cluster]) == [], f"the Cluster is {state}"


class TestAdmissionDefaulting(AdmissionConformance):
    """Defaulting is deterministic and idempotent."""

    @classmethod
    def cases(cls, provider: ProviderUnderTest) -> Sequence[AdmissionCase]:
        """Return a case for each kind that has a defaulter."""
        return [case for case in super().cases(provider) if case.kind.defaulter is not None]

    def test_defaulting_again_changes_nothing(self, case: AdmissionCase) -> None:
        """Applying the defaults a second time does not change the object.

        Otherwise a ClusterClass would roll out machines forever.

        Proves: TP-07.
        """
        for obj in case.objects():
            once = default(case.kind, obj)
            assert once.refusal == ""
            assert default(case.kind, once.object).object == once.object

    def test_the_same_object_gets_the_same_defaults(self, case: AdmissionCase) -> None:
        """The same object always gets the same defaults.

        Core compares the results of two dry runs.

        Proves: TP-07.
        """
        for obj in case.objects():
            assert default(case.kind, obj) == default(case.kind, obj)
