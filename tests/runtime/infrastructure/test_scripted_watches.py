"""Further watches: what enqueues a machine, and what does not."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.reconcile.watched_kinds import Watch
from capsmith_runtime.testing.conformance.base import scenario
from capsmith_runtime.testing.infrastructure.environment import InfrastructureEnvironment
from tests.runtime.infrastructure import scripted_provider
from tests.runtime.infrastructure.scripted_provider import (
    GROUP,
    PROVISIONED,
    Script,
    ScriptedMachines,
    ScriptFactory,
    add_machine,
)

CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
SECRET = ResourceType("", "v1", "Secret", "secrets")
REGION = ResourceType("acme.io", "v1", "Region", "regions", namespaced=False)
PROVIDER = replace(
    scripted_provider.PROVIDER,
    components={
        "infrastructure": replace(
            scripted_provider.COMPONENT,
            watches=(
                Watch(kind="AcmeMachine", resource=CONFIG_MAP),
                Watch(kind="AcmeMachine", resource=CONFIG_MAP, label="acme.io/machine"),
                Watch(kind="AcmeMachine", resource=SECRET, path=("spec", "image")),
                Watch(kind="AcmeMachine", resource=REGION, path=("spec", "image")),
            ),
        )
    },
)


def _object(resource: ResourceType, name: str, **metadata: Any) -> JSON:
    place = {"namespace": "default"} if resource.namespaced else {}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, **place, **metadata},
        "data": {},
    }


def _owner(name: str, kind: str = "AcmeMachine", group: str = GROUP) -> dict[str, Any]:
    reference = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "name": name, "uid": "1"}
    return {"ownerReferences": [reference]}


def _is_called(script: Script, times: int) -> bool:
    return len(script.calls) > times


class TestFurtherWatches(ScriptedMachines):
    """Objects that machines own, name or are named by."""

    @pytest.mark.parametrize("way", ["owner", "label", "field", "cluster-scoped"])
    @scenario
    async def test_a_change_calls_the_reconciler(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, way: str
    ) -> None:
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        image = env.core.infra_machine(key)["spec"]["image"]
        obj = {
            "owner": _object(CONFIG_MAP, "a", **_owner(key.name)),
            "label": _object(CONFIG_MAP, "b", labels={"acme.io/machine": key.name}),
            "field": _object(SECRET, image),
            "cluster-scoped": _object(REGION, image),
        }[way]
        on = NamespacedName(obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        for change in (
            lambda: env.api.add(obj),
            lambda: env.api.change(obj["kind"], on, {"data": {"x": "1"}}),
            lambda: env.api.remove(obj["kind"], on),
        ):
            await env.quiet()
            calls = len(script.calls)
            change()
            await env.eventually("called again", partial(_is_called, script, calls))

    @pytest.mark.parametrize(
        "obj",
        [
            _object(CONFIG_MAP, "a"),
            _object(CONFIG_MAP, "a", **_owner("machine", kind="AcmeCluster")),
            _object(CONFIG_MAP, "a", **_owner("machine", group="acme.io")),
            _object(CONFIG_MAP, "a", **_owner("another")),
            _object(CONFIG_MAP, "a", labels={"acme.io/machine": ""}),
            _object(SECRET, "another"),
            _object(ResourceType("", "v1", "Pod", "pods"), "a", **_owner("machine")),
        ],
    )
    @scenario
    async def test_other_objects_call_nothing(
        self, env: InfrastructureEnvironment, normal: ScriptFactory, obj: JSON
    ) -> None:
        script = normal(PROVISIONED)
        key = env.core.add_machine(await env.running_cluster(), "machine")
        await env.eventually("provisioned", lambda: env.has_machine(key))
        await env.quiet()
        calls = len(script.calls)
        env.api.add(obj)
        await env.quiet()
        assert len(script.calls) == calls

    @scenario
    async def test_the_content_of_objects_is_not_requested(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        selections: dict[str, bool] = {}
        listed = env.api.list_page

        async def list_page(resource: ResourceType, selection: Selection, **rest: Any) -> Page:
            selections[resource.kind] = selection.metadata_only
            return await listed(resource, selection, **rest)

        await env.stop()
        monkeypatch.setattr(env.api, "list_page", list_page)
        env.start()
        await env.eventually("listed", lambda: "Region" in selections)
        assert {kind for kind, is_limited in selections.items() if is_limited} >= {
            *("ConfigMap", "Region")
        }

    @scenario
    async def test_a_kind_that_is_not_served_is_watched_when_it_is(
        self,
        env: InfrastructureEnvironment,
        normal: ScriptFactory,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        listed, is_served = env.api.list_page, [False]

        async def list_page(resource: ResourceType, selection: Selection, **rest: Any) -> Page:
            if resource == REGION and not is_served[0]:
                raise create_api_error(404, "NotFound", "404 page not found")
            return await listed(resource, selection, **rest)

        await env.stop()
        monkeypatch.setattr(env.api, "list_page", list_page)
        env.start()
        script = normal(PROVISIONED)
        key = await add_machine(env)
        await env.eventually("provisioned", lambda: env.has_machine(key))
        await env.quiet()
        calls = len(script.calls)
        is_served[0] = True
        env.api.add(_object(REGION, env.core.infra_machine(key)["spec"]["image"]))
        await env.eventually("called again", lambda: len(script.calls) > calls)
