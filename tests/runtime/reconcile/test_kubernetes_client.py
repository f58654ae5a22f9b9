"""The client that unit tests give to scopes; it has the declared permissions only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from capsmith_runtime.component import Component
from capsmith_runtime.errors import (
    AlreadyExistsError,
    ApiError,
    CallEndedError,
    ConflictError,
    ForbiddenError,
    InvalidRequestError,
    KubernetesError,
    NotDeclaredError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnreachableError,
    create_api_error,
)
from capsmith_runtime.kube.client import JSON
from capsmith_runtime.reconcile.kubernetes_client import (
    ClientSession,
    KubernetesClient,
    create_opener,
)
from capsmith_runtime.reconcile.permissions import Permissions, PolicyRule
from capsmith_runtime.testing import infrastructure as testing
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.kubernetes import fake_client
from capsmith_runtime.testing.manifests import Manifests

VERBS = ("get", "list", "create", "patch", "delete")
RULES = (
    PolicyRule(("",), ("configmaps",), VERBS),
    PolicyRule(("",), ("secrets",), ("get", "create")),
    PolicyRule(("",), ("namespaces",), ("get", "patch")),
)
COMPONENT = Component(
    label="infrastructure-acme", namespace="acme", contract="v1beta2", permissions=RULES
)


def _config_map(name: str = "a", namespace: str = "default", **data: str) -> JSON:
    metadata: JSON = {"name": name, "namespace": namespace, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_objects_are_read_by_name_and_by_label() -> None:
    client = fake_client(
        COMPONENT, _config_map("a", x="1"), _config_map("b"), _config_map("a", "other")
    )

    found = client.get("v1", "ConfigMap", "a")
    assert found is not None
    assert found["data"] == {"x": "1"}
    assert client.get("v1", "ConfigMap", "c") is None
    assert client.get("v1", "ConfigMap", "b", namespace="other") is None
    assert len(client.list("v1", "ConfigMap")) == 2
    assert len(client.list("v1", "ConfigMap", labels="app=a", namespace="")) == 2


def test_objects_are_created_changed_and_deleted() -> None:
    client = fake_client(COMPONENT)

    client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    with pytest.raises(AlreadyExistsError):
        client.create(_config_map("a"))
    client.patch("v1", "ConfigMap", "a", {"data": {"x": "1"}})
    found = client.get("v1", "ConfigMap", "a")
    assert found is not None
    assert (found["metadata"]["namespace"], found["data"]) == ("default", {"x": "1"})
    assert client.delete("v1", "ConfigMap", "a") is True
    assert client.delete("v1", "ConfigMap", "a") is False
    with pytest.raises(NotFoundError):
        client.patch("v1", "ConfigMap", "a", {"data": {"x": "2"}})


def test_a_patch_can_require_a_version() -> None:
    client = fake_client(COMPONENT, _config_map())
    found = client.get("v1", "ConfigMap", "a")
    assert found is not None
    version = {"resourceVersion": found["metadata"]["resourceVersion"]}

    client.patch("v1", "ConfigMap", "a", {"metadata": version, "data": {"x": "1"}})
    with pytest.raises(ConflictError) as caught:
        client.patch("v1", "ConfigMap", "a", {"metadata": version, "data": {"x": "2"}})
    assert caught.value.reason == "KubernetesConflict"


def test_fields_that_are_applied_no_longer_are_removed() -> None:
    client = fake_client(COMPONENT)

    client.apply(_config_map(x="1", y="1"))
    client.patch("v1", "ConfigMap", "a", {"data": {"z": "1"}})
    client.apply(_config_map(x="2"))
    found = client.get("v1", "ConfigMap", "a")
    assert found is not None
    assert found["data"] == {"x": "2", "z": "1"}


def test_objects_without_namespace() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    client = fake_client(COMPONENT, namespace)

    assert client.get("v1", "Namespace", "n", namespace="") is not None
    client.patch("v1", "Namespace", "n", {"metadata": {"labels": {"a": "b"}}}, namespace="")


@pytest.mark.parametrize(
    ("method", "arguments", "verb"),
    [
        ("get", ("v1", "Pod", "a"), "get pods"),
        ("list", ("v1", "Secret"), "list secrets"),
        ("create", ({**_config_map(), "kind": "Pod"},), "create pods"),
        ("apply", ({**_config_map(), "kind": "Secret"},), "patch secrets"),
        ("patch", ("v1", "Secret", "a", {}), "patch secrets"),
        ("delete", ("v1", "Secret", "a"), "delete secrets"),
    ],
)
def test_undeclared_requests_are_refused(
    method: str, arguments: tuple[Any, ...], verb: str
) -> None:
    with pytest.raises(NotDeclaredError, match=f"does not declare {verb}: add .* to rbac"):
        getattr(fake_client(COMPONENT), method)(*arguments)


def test_an_object_needs_a_name() -> None:
    with pytest.raises(InvalidRequestError, match=r"metadata\.name"):
        fake_client(COMPONENT).create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})


def test_a_scope_of_a_unit_test_needs_a_client() -> None:
    with pytest.raises(RuntimeError, match="fake_client"):
        testing.infra_machine({}).client.get("v1", "ConfigMap", "a")


def test_the_event_loop_is_not_blocked() -> None:
    async def call() -> None:
        fake_client(COMPONENT).get("v1", "ConfigMap", "a")

    with pytest.raises(RuntimeError, match="_async"):
        asyncio.run(call())


def test_a_request_ends_with_its_call() -> None:
    class Slow(FakeApi):
        async def create(self, *args: Any) -> JSON:
            await asyncio.Event().wait()
            raise AssertionError

    async def call() -> None:
        api = Slow("v1beta2", Manifests(()))
        session = ClientSession(
            create_opener(api), Permissions(RULES), "default", asyncio.get_running_loop()
        )
        client = KubernetesClient(session)
        in_thread = asyncio.create_task(asyncio.to_thread(client.create, _config_map("b")))
        on_loop = asyncio.create_task(client.create_async(_config_map()))
        await asyncio.sleep(0.1)
        session.end()
        for running in (in_thread, on_loop):
            with pytest.raises(CallEndedError):
                await running
        with pytest.raises(CallEndedError):
            await client.get_async("v1", "ConfigMap", "a")

    asyncio.run(call())


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (0, "ConnectError", UnreachableError),
        (403, "Forbidden", ForbiddenError),
        (404, "NotFound", NotFoundError),
        (409, "Conflict", ConflictError),
        (409, "AlreadyExists", AlreadyExistsError),
        (422, "Invalid", InvalidRequestError),
        (429, "TooManyRequests", TooManyRequestsError),
        (500, "InternalError", ServerError),
    ],
)
def test_errors_have_a_type_for_authors(status: int, reason: str, expected: type[ApiError]) -> None:
    error = create_api_error(status, reason, "text", 3.0).for_request("get Pod a")

    assert type(error) is expected
    assert isinstance(error, KubernetesError)
    assert not error.is_of_runtime
    assert error.retry_after == 3.0
    assert error.message.startswith("get Pod a: ")
    assert error.message.endswith("text")
