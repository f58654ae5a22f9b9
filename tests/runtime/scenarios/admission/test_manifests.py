"""The generated webhook configurations agree with what the manager serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from capsmith_runtime.testing.conformance.admission.webhooks import (
    AdmissionCase,
    AdmissionConformance,
)
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("everything")


@run_with("everything")
class TestAdmissionManifests(AdmissionConformance):
    """The API server calls what the manager serves."""

    def test_the_api_server_calls_each_path(self, case: AdmissionCase) -> None:
        kind, namespace = case.kind, case.component.namespace
        expected = {
            "ValidatingWebhookConfiguration": kind.validate_path if kind.validator else "",
            "MutatingWebhookConfiguration": kind.mutate_path if kind.defaulter else "",
        }
        for configuration, path in expected.items():
            found = list(_webhooks(case, configuration))
            assert [each["clientConfig"]["service"]["path"] for each in found] == (
                [path] if path else []
            )
            for each in found:
                service = each["clientConfig"]["service"]
                assert (service["name"], service["namespace"]) == (
                    f"{namespace}-webhook",
                    namespace,
                )
                assert each["timeoutSeconds"] == kind.timeout_seconds
                assert each["sideEffects"] == "None"

    @pytest.mark.parametrize(
        "configuration", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"]
    )
    def test_every_served_version_is_admitted(
        self, case: AdmissionCase, configuration: str
    ) -> None:
        manifests = case.provider.manifests
        served = {
            version["name"]
            for version in manifests.crd(case.kind.kind)["spec"]["versions"]
            if version["served"]
        }
        plurals = {manifests.crd(kind)["spec"]["names"]["plural"] for kind in case.kinds}
        for each in _webhooks(case, configuration):
            (rule,) = each["rules"]
            assert set(rule["apiVersions"]) == served
            assert set(rule["resources"]) == plurals


def _webhooks(case: AdmissionCase, configuration: str) -> Iterator[dict[str, Any]]:
    """Yield the webhooks of a kind in the configurations of its component."""
    for document in case.provider.manifests.documents("webhook"):
        if document["kind"] == configuration:
            for webhook in document["webhooks"]:
                if webhook["clientConfig"]["service"]["path"].endswith(
                    f"/{case.kind.plural}.{case.kind.group}"
                ):
                    yield webhook
