"""References to kinds of other providers, whose versions come from the labels of their CRDs."""

from __future__ import annotations

import json
from typing import Any, cast

from capsmith_runtime.conversion.controllers import (
    EXPIRY_SECONDS,
    PATH,
    ConversionWebhook,
    ConversionWebhookGroup,
)
from capsmith_runtime.errors import ApiError, create_api_error
from capsmith_runtime.kube.client import JSON, KubeClient, Page
from capsmith_runtime.kube.http_server import Request
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.webhook.options import WebhookOptions
from tests.runtime.conversion.kinds import NEW, OLD, kinds, named, resources

GROUP, KIND = "example.com", "OtherMachineTemplate"
CONTROL_PLANE = "HarbourControlPlane"


class Crds:
    """The CRDs of an API server, and how often they were listed."""

    def __init__(self) -> None:
        self.version = ""
        self.lists = 0
        self.error: ApiError | None = None

    async def list_page(self, *args: Any, **options: Any) -> Page:
        self.lists += 1
        if self.error is not None:
            raise self.error
        return Page([self._crd()] if self.version else [], "1", "")

    def _crd(self) -> JSON:
        labels = {"cluster.x-k8s.io/v1beta1": self.version}
        spec = {"group": GROUP, "names": {"kind": KIND}}
        return {"metadata": {"name": "others", "labels": labels}, "spec": spec}


class Webhook:
    """The conversion webhook of a manager, on a clock of its own."""

    def __init__(self) -> None:
        self.crds = Crds()
        self.now = 0.0
        self._group = ConversionWebhookGroup(
            ConversionWebhook(kinds(), {}),
            cast(KubeClient, self.crds),
            WebhookOptions(),
            Metrics(),
            clock=lambda: self.now,
        )

    async def reference(self) -> JSON:
        """Return a reference to the kind after a conversion to contract v1beta1."""
        template = {"spec": {"infrastructureRef": {"apiGroup": GROUP, "kind": KIND, "name": "t"}}}
        spec = {"version": "v1.34.0", "machineTemplate": template}
        review = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {
                "uid": "7",
                "desiredAPIVersion": f"{resources()[CONTROL_PLANE].group}/{OLD}",
                "objects": [named(CONTROL_PLANE, NEW, spec=spec)],
            },
        }
        response = await self._group.handle(Request("POST", PATH, json.dumps(review).encode()))
        (converted,) = json.loads(response.body)["response"]["convertedObjects"]
        found: JSON = converted["spec"]["machineTemplate"]["infrastructureRef"]
        return found


async def test_a_provider_that_is_installed_later() -> None:
    webhook = Webhook()
    assert "apiVersion" not in await webhook.reference()
    webhook.crds.version = "v1alpha3"
    assert (await webhook.reference())["apiVersion"] == f"{GROUP}/v1alpha3"


async def test_a_version_is_read_again_after_minutes() -> None:
    webhook = Webhook()
    webhook.crds.version = "v1alpha3"
    await webhook.reference()
    webhook.crds.version = "v1alpha3_v1alpha4"
    webhook.now = EXPIRY_SECONDS - 1
    assert (await webhook.reference())["apiVersion"] == f"{GROUP}/v1alpha3"
    assert webhook.crds.lists == 1
    webhook.now = EXPIRY_SECONDS
    assert (await webhook.reference())["apiVersion"] == f"{GROUP}/v1alpha4"


async def test_the_last_version_remains_while_none_can_be_read() -> None:
    webhook = Webhook()
    webhook.crds.version = "v1alpha3"
    await webhook.reference()
    webhook.now, webhook.crds.error = EXPIRY_SECONDS, create_api_error(500, "Test", "no answer")
    assert (await webhook.reference())["apiVersion"] == f"{GROUP}/v1alpha3"
