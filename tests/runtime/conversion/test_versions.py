"""References to kinds of other providers, whose versions come from the labels of their CRDs."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast

from capsmith_runtime.conversion.controllers import (
    ABSENCE_SECONDS,
    EXPIRY_SECONDS,
    PATH,
    ConversionWebhook,
    ConversionWebhookGroup,
)
from capsmith_runtime.errors import ApiError, create_api_error
from capsmith_runtime.kube.client import JSON, KubeClient, Page
from capsmith_runtime.kube.http_server import Request, Response
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
        self.group = ConversionWebhookGroup(
            ConversionWebhook(kinds(), {}),
            cast(KubeClient, self.crds),
            WebhookOptions(),
            Metrics(),
            clock=lambda: self.now,
        )

    async def reference(self) -> JSON:
        """Return a reference to the kind after a conversion to contract v1beta1."""
        (found,) = await self.references(KIND)
        return found

    async def references(self, *kinds: str) -> list[JSON]:
        """Return references to kinds, each in an object of its own, after that conversion."""
        response = await self.review(*kinds)
        converted = json.loads(response.body)["response"]["convertedObjects"]
        return [each["spec"]["machineTemplate"]["infrastructureRef"] for each in converted]

    async def review(self, *kinds: str) -> Response:
        """Return the response to a review of one control plane for each kind."""
        review = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "ConversionReview",
            "request": {
                "uid": "7",
                "desiredAPIVersion": f"{resources()[CONTROL_PLANE].group}/{OLD}",
                "objects": [named(CONTROL_PLANE, NEW, spec=_spec(kind)) for kind in kinds],
            },
        }
        return await self.handle(Request("POST", PATH, json.dumps(review).encode()))

    async def handle(self, request: Request) -> Response:
        """Return the response to any request."""
        return await self.group.handle(request)


def _spec(kind: str) -> JSON:
    template = {"spec": {"infrastructureRef": {"apiGroup": GROUP, "kind": kind, "name": "t"}}}
    return {"version": "v1.34.0", "machineTemplate": template}


async def test_a_provider_that_is_installed_later() -> None:
    webhook = Webhook()
    assert "apiVersion" not in await webhook.reference()
    webhook.crds.version = "v1alpha3"
    assert "apiVersion" not in await webhook.reference()
    webhook.now = ABSENCE_SECONDS
    assert (await webhook.reference())["apiVersion"] == f"{GROUP}/v1alpha3"
    assert webhook.crds.lists == 2


async def test_references_to_many_kinds_cost_one_listing() -> None:
    """Any user may write them, and reviews of all objects of the kind wait for the answer."""
    webhook = Webhook()
    webhook.crds.version = "v1alpha3"
    kinds = [f"Other{number}" for number in range(300)]
    *unknown, known = await webhook.references(*kinds, KIND)
    assert known["apiVersion"] == f"{GROUP}/v1alpha3"
    assert [each["kind"] for each in unknown] == kinds
    assert not any("apiVersion" in each for each in unknown)
    await asyncio.gather(*(webhook.references(f"Another{number}") for number in range(10)))
    assert webhook.crds.lists == 1


async def test_reviews_that_wait_share_a_listing() -> None:
    webhook = Webhook()
    await asyncio.gather(*(webhook.references(f"Other{number}") for number in range(10)))
    assert webhook.crds.lists == 1


async def test_without_any_version_an_error_is_temporary() -> None:
    webhook = Webhook()
    webhook.crds.error = create_api_error(500, "Test", "no answer")
    assert (await webhook.review(KIND)).status == 503


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
