"""The runtime extension of a manager: when it starts, and how it registers with core."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest
import trustme

from capsmith_runtime.contract.v1beta2 import CoreV1Beta2
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.extension import controllers, in_place, lifecycle
from capsmith_runtime.extension.controllers import (
    Registration,
    RuntimeExtensionGroup,
    RuntimeExtensionServer,
    build_extension_config,
)
from capsmith_runtime.extension.dispatch import API_VERSION, Handler
from capsmith_runtime.extension.responses import Proceed
from capsmith_runtime.kube.client import JSON, NamespacedName, ResourceType
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.options import Options
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.webhook import server
from capsmith_runtime.webhook.options import WEBHOOK, WebhookOptions
from tests.runtime.webhook.hook_serving import Running, trusting, write_certificate

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
    """The calls of an API server that a registration needs."""

    def __init__(self, *served: str) -> None:
        self.served = served
        self.applied: list[tuple[ResourceType, JSON]] = []
        self.refuses = False
        self.has_role = True

    async def served_versions(self, group: str) -> tuple[str, ...]:
        assert group == "runtime.cluster.x-k8s.io"
        return self.served

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        assert (resource.kind, key) == (
            "ClusterRole",
            NamespacedName("", "acme-system-manager-role"),
        )
        if not self.has_role:
            raise create_api_error(404, "NotFound", "no such role")
        return {"metadata": {"uid": "uid-of-the-role"}}

    async def apply(self, resource: ResourceType, obj: JSON, *, force: bool = False) -> JSON:
        assert force
        if self.refuses:
            raise create_api_error(403, "Forbidden", "the RuntimeSDK feature flag is not enabled")
        self.applied.append((resource, obj))
        return obj


Scenario = Callable[[RuntimeExtensionGroup, Api], Awaitable[None]]


def run(
    folder: Path, scenario: Scenario, api: Api, *, scope: WatchScope | None = None, url: str = ""
) -> None:
    registration = Registration(
        name="acme",
        label="runtime-extension-acme",
        service="acme-webhook",
        role="acme-system-manager-role",
    )
    kind = RuntimeExtensionServer(extension=Author, handlers=HANDLERS, registration=registration)
    webhook = WebhookOptions(host="127.0.0.1", port=0, certificates=folder, url=url)
    scope = scope or WatchScope(own_namespace="acme-system")

    async def main() -> None:
        caches = Caches(cast(Any, api), Metrics(), CoreV1Beta2(), scope)
        none = cast(Any, None)
        context = ControllerContext(
            client=none,
            label="runtime-extension-acme",
            contract="v1beta2",
            executor=none,
            sessions=none,
            events=none,
            writer=none,
            options=Options(extra={WEBHOOK.name: webhook}),
        )
        serving = kind(caches, context)
        assert isinstance(serving, RuntimeExtensionGroup)
        assert not serving.ready
        async with asyncio.timeout(120), asyncio.TaskGroup() as group:
            tasks = [group.create_task(service()) for service in serving.runnables]
            await scenario(serving, api)
            for task in tasks:
                task.cancel()

    asyncio.run(main())


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "RETRY_SECONDS", 0.02)
    monkeypatch.setattr(server, "POLL_SECONDS", 0.02)


async def until(holds: Callable[[], object]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


def test_it_registers_when_it_serves(tmp_path: Path) -> None:
    """Proves: RX-01, RX-09."""
    authority = trustme.CA()
    write_certificate(tmp_path, authority)

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
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
                # Core does not start while it cannot reach a registered extension.
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

    run(tmp_path, scenario, Api("v1beta2", "v1alpha1"))


def test_it_waits_for_core_and_for_its_certificate(tmp_path: Path) -> None:
    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await asyncio.sleep(0.1)
        api.served = ("v1beta2",)
        await asyncio.sleep(0.1)
        assert not serving.ready
        write_certificate(tmp_path, trustme.CA())
        await until(lambda: serving.ready and api.applied)

    run(tmp_path, scenario, Api())


def test_an_extension_without_a_role_has_no_owner(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    api = Api("v1beta2")
    api.has_role = False

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await until(lambda: api.applied)
        assert "ownerReferences" not in api.applied[0][1]["metadata"]

    run(tmp_path, scenario, api)


def test_it_retries_until_core_accepts_it(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    api = Api("v1beta2")
    api.refuses = True

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await until(lambda: serving.ready)
        await asyncio.sleep(0.1)
        api.refuses = False
        await until(lambda: api.applied)

    run(tmp_path, scenario, api)


def test_a_new_authority_is_registered_at_once(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await until(lambda: api.applied)
        other = trustme.CA()
        write_certificate(tmp_path, other)
        await until(lambda: len(api.applied) == 2)
        bundle = base64.b64decode(api.applied[1][1]["spec"]["clientConfig"]["caBundle"])
        assert bundle == other.cert_pem.bytes()

    run(tmp_path, scenario, Api("v1beta2"))


def test_scope_and_url(tmp_path: Path) -> None:
    write_certificate(tmp_path, trustme.CA())
    (tmp_path / "ca.crt").unlink()

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await until(lambda: api.applied)
        found = api.applied[0][1]
        assert found["metadata"]["labels"]["cluster.x-k8s.io/watch-filter"] == "blue"
        assert found["spec"] == {
            "clientConfig": {"url": "https://127.0.0.1:1"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "here"}},
        }

    scope = WatchScope(namespaces=("here",), watch_filter="blue", own_namespace="acme-system")
    run(tmp_path, scenario, Api("v1beta2"), scope=scope, url="https://127.0.0.1:1")


@pytest.mark.parametrize(
    ("scope", "expression"),
    [
        (WatchScope(namespaces=("a", "b")), {"operator": "In", "values": ["a", "b"]}),
        (WatchScope(excluded_namespaces=("c",)), {"operator": "NotIn", "values": ["c"]}),
    ],
)
def test_core_calls_only_for_watched_namespaces(scope: WatchScope, expression: JSON) -> None:
    """The registration selects the same namespaces as the manager's watches.

    Proves: CC-33.
    """
    registration = Registration(name="acme", label="extension-acme", service="acme", role="acme")
    selector = build_extension_config(registration, scope, b"", "v1")["spec"]["namespaceSelector"]
    assert selector == {"matchExpressions": [{"key": "kubernetes.io/metadata.name", **expression}]}


@pytest.mark.parametrize(
    ("served", "hooks"),
    [
        ("v1alpha1", ["BeforeClusterCreate"]),
        ("v1beta2", ["BeforeClusterCreate", "UpdateMachine"]),
    ],
)
def test_only_hooks_that_core_knows_are_registered(
    tmp_path: Path, served: str, hooks: list[str]
) -> None:
    """Core refuses all hooks of an extension if it does not know one of them.

    Proves: RX-04, RX-05.
    """
    authority = trustme.CA()
    write_certificate(tmp_path, authority)

    async def scenario(serving: RuntimeExtensionGroup, api: Api) -> None:
        await until(lambda: api.applied)
        assert api.applied[0][0].version == served
        client = Running(serving.port, cast(Any, None), trusting(authority))
        answer = await client.post(f"/{API_VERSION}/discovery")
        assert [each["requestHook"]["hook"] for each in answer.json["handlers"]] == hooks
        called = await client.post(f"/{API_VERSION}/updatemachine/update-machine")
        assert called.status == (200 if "UpdateMachine" in hooks else 404)

    run(tmp_path, scenario, Api(served))
