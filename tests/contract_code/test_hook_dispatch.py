"""From a request to the author's method and back, with an author who says what the test wants."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import pytest
from capsmith_generated.controllers.extension.dispatch import API_VERSION, Dispatcher, Handler
from capsmith_generated.controllers.extension.http import Request, Response
from capsmith_generated.extension import in_place, lifecycle, topology
from capsmith_generated.extension.answers import (
    HookError,
    InPlace,
    Proceed,
    RetryAfter,
    UpgradePlan,
    VariableDefinition,
)
from capsmith_generated.extension.topology import Patches
from capsmith_generated.runtime.metrics import Metrics

ROOT = f"/{API_VERSION}/"
CLUSTER = {"metadata": {"name": "c1", "namespace": "default"}, "spec": {}}


class Author:
    """Answers every hook the same way; the last request is kept."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self.request: Any = None

    def hook(self, request: Any) -> Any:
        self.request = request
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer(request) if callable(self._answer) else self._answer


def handler(hook: str, codec: Any, **more: Any) -> Handler:
    return Handler(hook=hook, name="it", method="hook", codec=codec, **more)


CREATE = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE)


def call(
    author: object, asked: Handler, body: Any = None, parts: Mapping[str, Any] | None = None
) -> Response:
    async def perform() -> Response:
        dispatcher = Dispatcher(author, [asked], Metrics(), threads=4)
        text = json.dumps({"cluster": CLUSTER} if body is None else body).encode()
        sent = {"method": "POST", "path": asked.path, "body": text, **(parts or {})}
        return await dispatcher.answer(Request(**sent))

    return asyncio.run(perform())


def answered(author: object, asked: Handler, body: Any = None) -> dict[str, Any]:
    response = call(author, asked, body)
    assert response.status == HTTPStatus.OK
    found: dict[str, Any] = json.loads(response.body)
    assert found.pop("apiVersion") == API_VERSION
    assert found.pop("kind") == f"{asked.hook}Response"
    return found


def test_discovery_names_every_handler() -> None:
    """Proves: RX-04."""
    asked = handler(
        "BeforeClusterDelete",
        lifecycle.BEFORE_CLUSTER_DELETE,
        timeout_seconds=30,
        ignore_failures=True,
    )
    response = call(Author(None), asked, parts={"path": f"{ROOT}discovery"})

    assert json.loads(response.body) == {
        "apiVersion": API_VERSION,
        "kind": "DiscoveryResponse",
        "status": "Success",
        "handlers": [
            {
                "name": "it",
                "requestHook": {"apiVersion": API_VERSION, "hook": "BeforeClusterDelete"},
                "timeoutSeconds": 30,
                "failurePolicy": "Ignore",
            }
        ],
    }


@pytest.mark.parametrize(
    ("parts", "status"),
    [
        ({"path": f"{ROOT}beforeclustercreate/other"}, 404),
        ({"path": f"{ROOT}beforeclustercreate"}, 404),
        ({"path": f"{ROOT}BeforeClusterCreate/it"}, 404),
        ({"path": "/"}, 404),
        ({"method": "GET"}, 405),
        ({"method": "GET", "path": f"{ROOT}discovery"}, 405),
        ({"body": b""}, 400),
        ({"body": b"[]"}, 400),
        ({"body": b"\xff"}, 400),
        ({"body": b"[" * 100_000}, 400),
        ({"body": b'{"cluster": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"}, 400),
    ],
)
def test_what_is_no_call_of_a_hook(parts: dict[str, Any], status: int) -> None:
    """Proves: RX-03."""
    author = Author(Proceed())
    response = call(author, CREATE, parts=parts)

    assert response.status == status
    assert (response.allow == "POST") is (status == 405)
    assert author.request is None


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        (Proceed(), {"retryAfterSeconds": 0}),
        (Proceed("done"), {"retryAfterSeconds": 0, "message": "done"}),
        (RetryAfter(7, "not yet"), {"retryAfterSeconds": 7, "message": "not yet"}),
    ],
)
def test_hooks_that_hold_core_up(answer: Any, fields: dict[str, Any]) -> None:
    """Proves: RX-06."""
    assert answered(Author(answer), CREATE) == {"status": "Success", **fields}


def test_the_author_may_be_asynchronous() -> None:
    class Asynchronous:
        async def hook(self, request: Any) -> Any:
            await asyncio.sleep(0)
            return RetryAfter(3)

    assert answered(Asynchronous(), CREATE)["retryAfterSeconds"] == 3


def test_no_is_said_with_the_message_of_the_author() -> None:
    """Proves: RX-06."""
    found = answered(Author(HookError("no \ud800 more")), CREATE)
    assert found == {"status": "Failure", "message": "no ? more"}


@pytest.mark.parametrize("error", [KeyError("x"), SystemExit(1), StopIteration(), MemoryError()])
def test_text_of_unforeseen_errors_stays_here(error: BaseException) -> None:
    """Proves: RX-06."""
    found = answered(Author(error), CREATE)
    name = "RuntimeError" if isinstance(error, SystemExit | StopIteration) else type(error).__name__
    assert found == {
        "status": "Failure",
        "message": f"hook raised {name}: see the log of the extension",
    }


def test_what_core_may_ignore_is_no_answer() -> None:
    """Status Failure counts whatever the policy; only a call that fails can be ignored."""
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, ignore_failures=True)

    assert call(Author(KeyError("x")), asked).status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert answered(Author(HookError("no")), asked)["status"] == "Failure"


@pytest.mark.parametrize("answer", [None, "Proceed", UpgradePlan(control_plane=[]), Proceed])
def test_an_answer_of_another_hook_is_a_failure(answer: Any) -> None:
    found = answered(Author(answer if answer is not Proceed else lambda _: Proceed), CREATE)
    assert found == {
        "status": "Failure",
        "message": "hook raised TypeError: see the log of the extension",
    }


def test_who_does_not_come_back_is_not_waited_for() -> None:
    """The answer is there before core gives up, and other hooks are not held up."""
    asked = handler("BeforeClusterCreate", lifecycle.BEFORE_CLUSTER_CREATE, timeout_seconds=1)
    began = time.monotonic()
    found = answered(Author(lambda _: time.sleep(1.5)), asked)

    assert time.monotonic() - began < 1
    assert found == {
        "status": "Failure",
        "message": "hook took too long: see the log of the extension",
    }


def test_an_upgrade_as_it_is_told() -> None:
    steps = [{"version": "v1.33.0"}, {"version": "v1.34.1"}]
    author = Author(Proceed())
    body = {
        "settings": {"a": "b"},
        "cluster": CLUSTER,
        "fromKubernetesVersion": "v1.32.0",
        "toKubernetesVersion": "v1.34.1",
        "controlPlaneUpgrades": steps,
        "workersUpgrades": steps[1:],
    }
    answered(author, handler("BeforeClusterUpgrade", lifecycle.BEFORE_CLUSTER_UPGRADE), body)
    asked = author.request

    assert (asked.settings, asked.cluster.name) == ({"a": "b"}, "c1")
    assert (asked.from_version, asked.to_version) == ("v1.32.0", "v1.34.1")
    assert asked.control_plane_upgrades == ("v1.33.0", "v1.34.1")
    assert asked.workers_upgrades == ("v1.34.1",)

    after = {"cluster": CLUSTER, "kubernetesVersion": "v1.34.1"}
    answered(author, handler("AfterClusterUpgrade", lifecycle.AFTER_CLUSTER_UPGRADE), after)
    assert (author.request.version, author.request.workers_upgrades) == ("v1.34.1", ())


def test_a_plan() -> None:
    author = Author(UpgradePlan(control_plane=["v1.33.0", "v1.34.1"], workers=["v1.34.1"]))
    body = {
        "cluster": CLUSTER,
        "fromControlPlaneKubernetesVersion": "v1.32.0",
        "toKubernetesVersion": "v1.34.1",
    }
    found = answered(author, handler("GenerateUpgradePlan", lifecycle.GENERATE_UPGRADE_PLAN), body)

    assert found == {
        "status": "Success",
        "controlPlaneUpgrades": [{"version": "v1.33.0"}, {"version": "v1.34.1"}],
        "workersUpgrades": [{"version": "v1.34.1"}],
    }
    assert author.request.from_workers_version == ""


@pytest.mark.parametrize(
    "topology_of_cluster",
    [{"class": "fast"}, {"classRef": {"name": "fast"}}],
    ids=["v1beta1", "v1beta2"],
)
def test_clusters_of_both_versions(topology_of_cluster: dict[str, Any]) -> None:
    """Core before v1.13 sends v1beta1.

    Proves: RX-07.
    """
    author = Author(Proceed())
    variables = [{"name": "size", "value": 3}, "nonsense", {"value": 1}]
    spec = {"topology": {**topology_of_cluster, "version": "v1.34.0", "variables": variables}}
    body = {"cluster": {"metadata": {"name": "c1", "annotations": {"a": "b"}}, "spec": spec}}
    answered(author, CREATE, body)
    cluster = author.request.cluster

    assert (cluster.class_name, cluster.version) == ("fast", "v1.34.0")
    assert (dict(cluster.variables), cluster.annotations) == ({"size": 3}, {"a": "b"})


def test_variables_are_told_as_a_cluster_class_has_them() -> None:
    schema = {"type": "string", "enum": ["a"]}
    author = Author([VariableDefinition(name="size", schema=schema, required=True)])
    asked = handler("DiscoverVariables", topology.DISCOVER_VARIABLES)

    assert answered(author, asked, {"settings": {"a": "b"}}) == {
        "status": "Success",
        "variables": [{"name": "size", "required": True, "schema": {"openAPIV3Schema": schema}}],
    }
    assert author.request.settings == {"a": "b"}


@pytest.mark.parametrize(
    ("problems", "fields"),
    [([], {"status": "Success"}), (["a", "b"], {"status": "Failure", "message": "a; b"})],
)
def test_a_topology_is_refused_with_all_its_problems(
    problems: list[str], fields: dict[str, Any]
) -> None:
    asked = handler("ValidateTopology", topology.VALIDATE_TOPOLOGY)
    assert answered(Author(problems), asked, {"items": []}) == fields


def test_a_text_is_no_list_of_problems() -> None:
    asked = handler("ValidateTopology", topology.VALIDATE_TOPOLOGY)
    assert "TypeError" in answered(Author("no"), asked, {"items": []})["message"]


def test_a_variable_of_another_type_is_said() -> None:
    def hook(request: Any) -> Patches:
        request.variables.value("size", int)
        return Patches()

    body = {"variables": [{"name": "size", "value": "large"}], "items": []}
    found = answered(Author(hook), handler("GeneratePatches", topology.GENERATE_PATCHES), body)
    assert found == {
        "status": "Failure",
        "message": "variable size: expected a whole number, found 'large'",
    }


def test_updates_in_place() -> None:
    current = {"machine": {"spec": {"version": "v1"}}, "infrastructureMachine": {"spec": {"a": 1}}}
    desired = {"machine": {"spec": {"version": "v2"}}, "infrastructureMachine": {"spec": {"a": 2}}}
    asked = handler("CanUpdateMachine", in_place.CAN_UPDATE_MACHINE)
    body = {"current": current, "desired": desired}
    found = answered(Author(InPlace(machine=["/spec/version"])), asked, body)

    assert sorted(found) == ["machinePatch", "status"]
    assert found["machinePatch"]["patchType"] == "JSONPatch"
    assert answered(Author(InPlace()), asked, body) == {"status": "Success"}

    update = handler("UpdateMachine", in_place.UPDATE_MACHINE)
    assert answered(Author(RetryAfter(9)), update, {"desired": desired})["retryAfterSeconds"] == 9
