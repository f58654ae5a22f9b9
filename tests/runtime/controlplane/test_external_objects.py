"""Objects of other providers, whose kinds users choose in references."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from capsmith_runtime.contract.model import ObjectRef
from capsmith_runtime.contract.versions import choose
from capsmith_runtime.controlplane.external_objects import (
    CacheNotSyncedError,
    ContractKinds,
    ExternalObjects,
)
from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName, Page, ResourceType, Selection
from capsmith_runtime.kube.clock import monotonic
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.caches import Caches, WatchScope
from capsmith_runtime.testing import clock
from capsmith_runtime.testing.controlplane.fake_machines import (
    CONTROL_PLANE,
    INFRASTRUCTURE,
    crd_of,
    template_of,
)
from capsmith_runtime.testing.fake_api import FakeApi
from capsmith_runtime.testing.manifests import Manifests
from tests.runtime.support.waiting import running

MACHINE = ObjectRef(INFRASTRUCTURE, "FakeMachine", "m1")
TEMPLATE = ObjectRef(INFRASTRUCTURE, "FakeMachineTemplate", "t1")
FOREIGN = ObjectRef(INFRASTRUCTURE, "ForeignTemplate", "t1")
NAMESPACE = "default"


class Api(FakeApi):
    """Refuses lists of one kind, for which the manager has no permission."""

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        if resource.kind == FOREIGN.kind:
            raise create_api_error(403, "Forbidden", "cannot list")
        return await super().list_page(resource, selection, limit=limit, token=token)


class Site:
    """External objects on the fake API server, and the events that they have caused."""

    def __init__(self) -> None:
        self.api = Api("v1beta2", Manifests(()))
        for kind in ("FakeMachine", "FakeMachineTemplate", FOREIGN.kind):
            self.api.add(crd_of(INFRASTRUCTURE, kind))
        self.api.add(template_of("t1"))
        self.api.add(_machine())
        self.events: list[str] = []
        metrics = Metrics()
        caches = Caches(self.api, metrics, choose(["v1beta2"]), WatchScope())
        self.kinds = ContractKinds(self.api, metrics, "v1beta2")
        self.external = ExternalObjects(
            caches, self.kinds, self._note("machine"), self._note("template")
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        informers = [each.run() for each in self.kinds.informers]
        async with running(self.external.run(), *informers):
            for informer in self.kinds.informers:
                await informer.synced.wait()
            yield

    def _note(self, event: str) -> Callable[[JSON], None]:
        return lambda obj: self.events.append(f"{event} {obj['metadata']['name']}")


def _machine() -> JSON:
    labels = {CONTROL_PLANE: ""}
    metadata = {"namespace": NAMESPACE, "name": "m1", "labels": labels}
    return {
        "apiVersion": f"{INFRASTRUCTURE}/v1",
        "kind": "FakeMachine",
        "metadata": metadata,
        "spec": {},
    }


def _run(test: Callable[[Site], Awaitable[None]]) -> None:
    async def main() -> None:
        site = Site()
        async with site.running():
            await test(site)

    clock.run(main())


def test_a_machine_that_names_a_template_hides_no_templates() -> None:
    """The control planes of all tenants look for their templates in the same cache."""

    async def test(site: Site) -> None:
        assert await site.external.get("other", TEMPLATE) is None
        found = await site.external.get_template(NAMESPACE, TEMPLATE)
        assert found.obj["metadata"]["name"] == "t1"

    _run(test)


@pytest.mark.parametrize("misused", [True, False])
def test_a_template_of_the_kind_of_machines_takes_no_events(misused: bool) -> None:
    """The objects of other tenants' Machines still enqueue their control planes."""

    async def test(site: Site) -> None:
        if misused:
            await site.external.get_template(NAMESPACE, MACHINE)
        assert await site.external.get(NAMESPACE, MACHINE) is not None
        site.events.clear()
        key = NamespacedName(NAMESPACE, "m1")
        site.api.change("FakeMachine", key, {"metadata": {"labels": {"team": "x"}}})
        await asyncio.sleep(1)
        assert "machine m1" in site.events

    _run(test)


def test_workers_do_not_wait_again_for_a_kind_that_cannot_be_listed() -> None:
    """Control planes that refer to such a kind would occupy all workers."""

    async def test(site: Site) -> None:
        times = [monotonic()]
        for _ in range(3):
            with pytest.raises(CacheNotSyncedError):
                await site.external.get_template(NAMESPACE, FOREIGN)
            times.append(monotonic())
        assert times[0] < times[1] == times[2] == times[3]

    _run(test)
