"""The part of a manager that serves hooks: until when it waits, and what it tells core."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trustme
from capsmith_generated.contract.core_v1beta2 import CoreV1Beta2
from capsmith_generated.controllers.base import Tools
from capsmith_generated.controllers.extension import part as part_module
from capsmith_generated.controllers.extension.dispatch import API_VERSION, Handler
from capsmith_generated.controllers.extension.part import RuntimeExtensionPart, Serving
from capsmith_generated.controllers.extension.registration import Registration
from capsmith_generated.controllers.kinds import Registry
from capsmith_generated.controllers.world import Scope, World
from capsmith_generated.extension import in_place, lifecycle
from capsmith_generated.extension.answers import Proceed
from capsmith_generated.flags import Options
from capsmith_generated.runtime.client import JSON, Forbidden, Key, NotFound, ResourceType
from capsmith_generated.runtime.metrics import Metrics
from capsmith_generated.webhook_flags import WEBHOOK, WebhookOptions

from tests.contract_code.hook_serving import Running, trusting, write_certificate

HANDLERS = (
    Handler(
        hook="BeforeClusterCreate",
        name="before-cluster-create",
        method="hook",
        codec=lifecycle.BEFORE_CLUSTER_CREATE,
    ),
    Handler(
        hook="UpdateMachine",
        name="update-machine",
        method="hook",
        codec=in_place.UPDATE_MACHINE,
        since_v1beta2=True,
    ),
)


class Author:
    """Lets core proceed."""

    def hook(self, request: Any) -> Proceed:
        return Proceed()


class Api:
    """As much of an API server as a registration needs."""

    def __init__(self, *served: str) -> None:
        self.served = served
        self.applied: list[tuple[ResourceType, JSON]] = []
        self.refuses = False
        self.has_role = True

    async def served_versions(self, group: str) -> tuple[str, ...]:
        assert group == "runtime.cluster.x-k8s.io"
        return self.served

    async def get(self, resource: ResourceType, key: Key) -> JSON:
        assert (resource.kind, key) == ("ClusterRole", Key("", "acme-system-manager-role"))
        if not self.has_role:
            raise NotFound(404, "NotFound", "no such role")
        return {"metadata": {"uid": "uid-of-the-role"}}

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        assert force
        if self.refuses:
            raise Forbidden(403, "Forbidden", "the RuntimeSDK feature flag is not enabled")
        self.applied.append((resource, obj))
        return obj


Story = Callable[[Serving, Api], Awaitable[None]]


def play(
    folder: Path, story: Story, api: Api, *, scope: Scope | None = None, url: str = ""
) -> None:
    registration = Registration(
        name="acme",
        label="runtime-extension-acme",
        service="acme-webhook",
        role="acme-system-manager-role",
    )
    kind = RuntimeExtensionPart(extension=Author, handlers=HANDLERS, registration=registration)
    webhook = WebhookOptions(host="127.0.0.1", port=0, certificates=folder, url=url)
    scope = scope or Scope(own_namespace="acme-system")

    async def perform() -> None:
        registry = Registry(label="x", namespace="y")
        world = World(cast(Any, api), Metrics(), registry, CoreV1Beta2(), scope)
        none = cast(Any, None)
        tools = Tools(
            client=none,
            hooks=none,
            events=none,
            writer=none,
            credentials=none,
            options=Options(extra={WEBHOOK.name: webhook}),
        )
        serving = kind(world, tools)
        assert isinstance(serving, Serving)
        assert not serving.ready
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            tasks = [group.create_task(service()) for service in serving.services]
            await story(serving, api)
            for task in tasks:
                task.cancel()

    asyncio.run(perform())


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOOK_SECONDS", "RETRY_SECONDS"):
        monkeypatch.setattr(part_module, name, 0.02)


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_it_is_registered_when_it_serves(tmp_path: Path) -> None:
    """Proves: RX-01, RX-09."""
    authority = trustme.CA()
    write_certificate(tmp_path, authority)

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: api.applied)
        assert serving.ready
        (resource, found), *_ = api.applied
        assert (resource.api_version, resource.namespaced) == (found["apiVersion"], False)
        assert found == {
            "apiVersion": "runtime.cluster.x-k8s.io/v1beta2",
            "kind": "ExtensionConfig",
            "metadata": {
                "name": "acme",
                "labels": {"cluster.x-k8s.io/provider": "runtime-extension-acme"},
                # Core would look in vain for an extension that is gone, and not start.
                "ownerReferences": [
                    {
                        "apiVersion": "rbac.authorization.k8s.io/v1",
                        "kind": "ClusterRole",
                        "name": "acme-system-manager-role",
                        "uid": "uid-of-the-role",
                    }
                ],
            },
            "spec": {
                "clientConfig": {
                    "service": {"namespace": "acme-system", "name": "acme-webhook"},
                    "caBundle": base64.b64encode(authority.cert_pem.bytes()).decode(),
                }
            },
        }
        await asyncio.sleep(0.1)
        assert len(api.applied) == 1, "once is enough"

    play(tmp_path, story, Api("v1beta2", "v1alpha1"))


def test_it_waits_for_core_and_for_its_certificate(tmp_path: Path) -> None:
    async def story(serving: Serving, api: Api) -> None:
        await asyncio.sleep(0.1)
        api.served = ("v1beta2",)
        await asyncio.sleep(0.1)
        assert not serving.ready
        write_certificate(tmp_path, trustme.CA())
        await until(lambda: serving.ready and api.applied)

    play(tmp_path, story, Api())


def test_what_nobody_installed_owns_itself(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    api = Api("v1beta2")
    api.has_role = False

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: api.applied)
        assert "ownerReferences" not in api.applied[0][1]["metadata"]

    play(tmp_path, story, api)


def test_it_tries_again_until_core_takes_it(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    api = Api("v1beta2")
    api.refuses = True

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: serving.ready)
        await asyncio.sleep(0.1)
        api.refuses = False
        await until(lambda: api.applied)

    play(tmp_path, story, api)


def test_core_learns_of_another_authority_at_once(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: api.applied)
        other = trustme.CA()
        write_certificate(tmp_path, other)
        await until(lambda: len(api.applied) == 2)
        bundle = base64.b64decode(api.applied[1][1]["spec"]["clientConfig"]["caBundle"])
        assert bundle == other.cert_pem.bytes()

    play(tmp_path, story, Api("v1beta2"))


def test_scope_and_address_of_its_own(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    (tmp_path / "ca.crt").unlink()

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: api.applied)
        found = api.applied[0][1]
        assert found["metadata"]["labels"]["cluster.x-k8s.io/watch-filter"] == "blue"
        assert found["spec"] == {
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "here"}},
        }

    scope = Scope(namespace="here", watch_filter="blue", own_namespace="acme-system")
    play(tmp_path, story, Api("v1beta2"), scope=scope, url="https://127.0.0.1:1")


@pytest.mark.parametrize(
    ("served", "hooks"),
    [
        ("v1alpha1", ["BeforeClusterCreate"]),
        ("v1beta2", ["BeforeClusterCreate", "UpdateMachine"]),
    ],
)
def test_core_hears_only_of_hooks_that_it_can_know(
    tmp_path: Path, served: str, hooks: list[str]
) -> None:
    """One hook that core does not know would cost it all of them.

    Proves: RX-04, RX-05.
    """
    authority = trustme.CA()
    write_certificate(tmp_path, authority)

    async def story(serving: Serving, api: Api) -> None:
        await until(lambda: api.applied)
        assert api.applied[0][0].version == served
        client = Running(serving.port, cast(Any, None), trusting(authority))
        answer = await client.post(f"/{API_VERSION}/discovery")
        assert [each["requestHook"]["hook"] for each in answer.json["handlers"]] == hooks
        called = await client.post(f"/{API_VERSION}/updatemachine/update-machine")
        assert called.status == (200 if "UpdateMachine" in hooks else 404)

    play(tmp_path, story, Api(served))
