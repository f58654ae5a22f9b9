"""The migration of stored objects, piece by piece; the kit of each repository plays the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from capsmith_generated import migration_flags
from capsmith_generated.controllers.migration import migrator as migrator_module
from capsmith_generated.controllers.migration import walk as walk_module
from capsmith_generated.controllers.migration.definitions import CRD, definition
from capsmith_generated.controllers.migration.managed_fields import served_only
from capsmith_generated.controllers.migration.migrator import Migrator
from capsmith_generated.controllers.migration.walk import Pace, Walk
from capsmith_generated.flags import parse
from capsmith_generated.runtime.client import (
    JSON,
    ApiError,
    Gone,
    Invalid,
    Key,
    NotFound,
    Page,
    ResourceType,
    Selection,
    TooManyRequests,
)
from capsmith_generated.runtime.metrics import Metrics

THING = ResourceType("example.com", "v2", "Thing", "things")
NAME = Key("", "things.example.com")
Treat = Callable[[JSON], Awaitable[None]]


def crd(
    *versions: tuple[str, bool, bool], stored: tuple[str, ...] = ("v1", "v2"), generation: int = 1
) -> JSON:
    """Name, served, storage of each version."""
    return {
        "metadata": {
            **{"name": NAME.name, "uid": "u", "generation": generation, "resourceVersion": "7"}
        },
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things"},
            "versions": [
                {"name": name, "served": served, "storage": storage}
                for name, served, storage in versions
            ],
        },
        "status": {"storedVersions": list(stored)},
    }


BOTH = (("v1", True, False), ("v2", True, True))


def entry(manager: str, version: str, **more: Any) -> JSON:
    return {"manager": manager, "operation": "Apply", "apiVersion": version, **more}


class Api:
    """Pages of objects, of which the tests say how they are given."""

    def __init__(self, count: int = 0, page: int = 10) -> None:
        self.items = [{"metadata": {"name": f"t{n}", "uid": str(n)}} for n in range(count)]
        self.page = page
        self.expired: list[str] = []
        """Tokens that are refused, each once."""
        self.lists = 0
        self.crd: JSON | None = None
        self.patched: list[str] = []

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        assert selection.metadata_only
        self.lists += 1
        if token in self.expired:
            self.expired.remove(token)
            raise Gone(410, "Expired", token)
        begin = int(token or 0)
        end = begin + self.page
        return Page(self.items[begin:end], "1", str(end) if end < len(self.items) else "")

    async def get(self, resource: ResourceType, key: Key) -> JSON:
        assert (resource, key) == (CRD, NAME)
        if self.crd is None:
            raise NotFound(404, "NotFound", key.name)
        return self.crd

    async def patch(
        self, resource: ResourceType, key: Key, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        assert (resource, body, resource_version) == (THING, {}, "")
        self.patched.append(key.name)
        return {}

    async def patch_status(
        self, resource: ResourceType, key: Key, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        assert (resource, key, resource_version) == (CRD, NAME, "7")
        assert self.crd is not None
        self.crd["status"] = body["status"]
        return self.crd


def test_a_crd_is_read_in_a_version_that_is_served() -> None:
    found = definition(crd(("v1", True, False), ("v2", True, True)))
    assert found is not None
    assert (found.storage, found.resource.version) == ("v2", "v2")
    assert found.resource.path("n", "t") == "/apis/example.com/v2/namespaces/n/things/t"
    assert not found.is_migrated
    assert not found.has_status

    found = definition(crd(("v1", True, False), ("v2", False, True), stored=("v2",)))
    assert found is not None
    assert (found.storage, found.resource.version) == ("v2", "v1")
    assert found.served == {"example.com/v1"}
    assert found.is_migrated

    assert definition(crd(("v1", False, False), ("v2", False, True))) is None


def test_managed_fields_of_served_versions_stay() -> None:
    """Proves: CRD-16."""
    served = {"g/v2", "g/v3"}
    new, newer = entry("a", "g/v2"), entry("b", "g/v3")
    seed = {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:name": {}}}}

    def kept(*entries: JSON) -> list[JSON] | None:
        return served_only({"metadata": {"managedFields": list(entries)}}, served, "g/v3")

    assert served_only({"metadata": {}}, served, "g/v3") is None
    assert kept(new, newer) is None
    assert kept(entry("a", "g/v1"), new, newer) == [new, newer]
    # Never an empty list, which the API server takes for one that is not known.
    old = entry("a", "g/v1", time="2025-05-01T10:00:00Z", subresource="status", fieldsV1={"f:x": 1})
    assert kept(old, entry("b", "g/v1")) == [
        {**entry("a", "g/v3", time="2025-05-01T10:00:00Z"), **seed}
    ]


def test_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "PAUSE_SECONDS", 0.0)
    active, most = 0, 0
    pace = Pace()

    async def treat(obj: JSON) -> None:
        nonlocal active, most
        async with pace.turn():
            active += 1
            most = max(most, active)
            await asyncio.sleep(0)
            active -= 1

    walk = Walk(Api(25), treat)
    asyncio.run(walk.go(THING))
    assert walk.treated == 25
    assert most == walk_module.AT_A_TIME


def test_an_object_that_fails_stops_no_other_and_the_rest_is_not_done_again() -> None:
    calls: list[str] = []

    async def treat(obj: JSON) -> None:
        calls.append(obj["metadata"]["name"])
        if len(calls) in (3, 12):
            raise Invalid(422, "Invalid", calls[-1])

    walk = Walk(Api(25), treat)
    with pytest.raises(Invalid, match="t2"):
        asyncio.run(walk.go(THING))
    assert (len(calls), walk.treated) == (25, 23)
    asyncio.run(walk.go(THING))
    assert calls[25:] == ["t2", "t11"]


@pytest.mark.parametrize(
    ("error", "tried"),
    [
        (Invalid(422, "Invalid", ""), walk_module.MAX_FAILURES),
        (TooManyRequests(429, "TooManyRequests", "", retry_after=3.0), 1),
    ],
)
def test_what_all_objects_have_is_given_up_soon(error: ApiError, tried: int) -> None:
    calls: list[JSON] = []

    async def treat(obj: JSON) -> None:
        calls.append(obj)
        raise error

    api = Api(100)
    with pytest.raises(type(error)):
        asyncio.run(Walk(api, treat).go(THING))
    assert len(calls) == tried


def test_pages_that_expire() -> None:
    async def treat(obj: JSON) -> None:
        calls.append(obj["metadata"]["name"])

    calls: list[str] = []
    api = Api(25)
    api.expired = ["20", "10"]
    asyncio.run(Walk(api, treat).go(THING))
    assert sorted(calls) == sorted(obj["metadata"]["name"] for obj in api.items)

    # A server that never gives a second page is asked again later, not at once.
    api = Api(25)
    api.expired = ["10", "10"]
    with pytest.raises(Gone):
        asyncio.run(Walk(api, treat).go(THING))
    assert api.lists == 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the migrator takes for the time."""
    now = [1000.0]
    monkeypatch.setattr(migrator_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(walk_module, "PAUSE_SECONDS", 0.0)
    return now


def test_api_servers_get_time_to_learn_of_a_change(clock: list[float]) -> None:
    """Proves: CRD-16."""
    api = Api(3)
    api.crd = crd(*BOTH)
    migrator = Migrator(api, Metrics(), migration_flags.MigrationOptions())

    def reconciled() -> float | None:
        result: float | None = asyncio.run(migrator.reconcile(NAME)).requeue_after
        return result

    assert reconciled() == migrator_module.SETTLE_SECONDS
    clock[0] += 4
    assert reconciled() == 1
    # Changed in the meantime: everybody has to learn that first.
    api.crd["metadata"]["generation"] = 2
    assert reconciled() == migrator_module.SETTLE_SECONDS
    assert not api.patched
    clock[0] += 5
    assert reconciled() == 0
    assert api.patched == ["t0", "t1", "t2"]
    assert api.crd["status"] == {"storedVersions": ["v2"]}
    # From now on nothing is written; the one list is for managed fields.
    api.lists = 0
    assert [reconciled(), reconciled()] == [None, None]
    assert (len(api.patched), api.lists) == (3, 1)


def test_a_crd_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    migrator = Migrator(Api(), Metrics(), migration_flags.MigrationOptions())

    assert asyncio.run(migrator.reconcile(NAME)).requeue_after is None
    assert "there is no such CRD: nothing to migrate" in caplog.messages


@pytest.mark.parametrize(
    ("arguments", "rewrites", "cleans"),
    [
        ([], True, True),
        (["--skip-crd-migration-phases=StorageVersionMigration"], False, True),
        (["--skip-crd-migration-phases", "CleanupManagedFields"], True, False),
        (
            ["--skip-crd-migration-phases=CleanupManagedFields,StorageVersionMigration"],
            False,
            False,
        ),
        (
            [
                "--skip-crd-migration-phases=CleanupManagedFields",
                "--skip-crd-migration-phases=StorageVersionMigration",
            ],
            False,
            False,
        ),
    ],
)
def test_the_flag_of_core(arguments: list[str], rewrites: bool, cleans: bool) -> None:
    options = parse(arguments, ["infrastructure"], [migration_flags.MIGRATION])
    found = migration_flags.of(options)
    assert (found.rewrites, found.cleans) == (rewrites, cleans)


def test_a_phase_that_is_none() -> None:
    with pytest.raises(SystemExit):
        parse(["--skip-crd-migration-phases=All"], ["ipam"], [migration_flags.MIGRATION])
