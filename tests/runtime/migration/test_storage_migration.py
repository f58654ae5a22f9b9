"""Units of the migration of stored objects; the conformance tests run it as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from capsmith_runtime.errors import (
    ApiError,
    InvalidRequestError,
    ResourceExpiredError,
    create_api_error,
)
from capsmith_runtime.kube.client import (
    JSON,
    KubeClient,
    NamespacedName,
    Page,
    ResourceType,
    Selection,
)
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.migration import controllers
from capsmith_runtime.migration import options as migration_flags
from capsmith_runtime.migration.controllers import (
    CRD,
    CRDMigrator,
    Walk,
    WriteLimiter,
    filter_served_entries,
    read_definition,
)
from capsmith_runtime.options import parse

THING = ResourceType("example.com", "v2", "Thing", "things")
NAME = NamespacedName("", "things.example.com")
ProcessObject = Callable[[JSON], Awaitable[None]]


def crd(
    *versions: tuple[str, bool, bool], stored: tuple[str, ...] = ("v1", "v2"), generation: int = 1
) -> JSON:
    """Return a CRD; a version is its name, whether it is served, and whether it is stored."""
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
    """Serves pages of objects, some of which expire."""

    def __init__(self, count: int = 0, page: int = 10) -> None:
        self.items = [{"metadata": {"name": f"t{n}", "uid": str(n)}} for n in range(count)]
        self.page = page
        self.expired: list[str] = []
        """Tokens that are refused, each once."""
        self.lists = 0
        self.crd: JSON | None = None
        self.patched: list[str] = []
        self.client = cast(KubeClient, self)

    async def list_page(
        self, resource: ResourceType, selection: Selection, *, limit: int = 0, token: str = ""
    ) -> Page:
        assert selection.metadata_only
        self.lists += 1
        if token in self.expired:
            self.expired.remove(token)
            raise create_api_error(410, "Expired", token)
        begin = int(token or 0)
        end = begin + self.page
        return Page(self.items[begin:end], "1", str(end) if end < len(self.items) else "")

    async def get(self, resource: ResourceType, key: NamespacedName) -> JSON:
        assert (resource, key) == (CRD, NAME)
        if self.crd is None:
            raise create_api_error(404, "NotFound", key.name)
        return self.crd

    async def patch(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        assert (resource, body, resource_version) == (THING, {}, "")
        self.patched.append(key.name)
        return {}

    async def patch_status(
        self, resource: ResourceType, key: NamespacedName, body: JSON, *, resource_version: str = ""
    ) -> JSON:
        assert (resource, key, resource_version) == (CRD, NAME, "7")
        assert self.crd is not None
        self.crd["status"] = body["status"]
        return self.crd


def test_a_crd_is_read_in_a_served_version() -> None:
    found = read_definition(crd(("v1", True, False), ("v2", True, True)))
    assert found is not None
    assert (found.storage, found.resource.version) == ("v2", "v2")
    assert found.resource.path("n", "t") == "/apis/example.com/v2/namespaces/n/things/t"
    assert not found.is_migrated
    assert not found.has_status

    found = read_definition(crd(("v1", True, False), ("v2", False, True), stored=("v2",)))
    assert found is not None
    assert (found.storage, found.resource.version) == ("v2", "v1")
    assert found.served == {"example.com/v1"}
    assert found.is_migrated

    assert read_definition(crd(("v1", False, False), ("v2", False, True))) is None


def test_managed_fields_of_served_versions_are_kept() -> None:
    """Proves: CRD-16."""
    served = {"g/v2", "g/v3"}
    new, newer = entry("a", "g/v2"), entry("b", "g/v3")
    seed = {"fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:name": {}}}}

    def kept(*entries: JSON) -> list[JSON] | None:
        return filter_served_entries({"metadata": {"managedFields": list(entries)}}, served, "g/v3")

    assert filter_served_entries({"metadata": {}}, served, "g/v3") is None
    assert kept(new, newer) is None
    assert kept(entry("a", "g/v1"), new, newer) == [new, newer]
    # Never an empty list, which the API server takes for one that is not known.
    old = entry("a", "g/v1", time="2025-05-01T10:00:00Z", subresource="status", fieldsV1={"f:x": 1})
    assert kept(old, entry("b", "g/v1")) == [
        {**entry("a", "g/v3", time="2025-05-01T10:00:00Z"), **seed}
    ]


def test_writes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controllers, "PAUSE_SECONDS", 0.0)
    active, most = 0, 0
    limiter = WriteLimiter()

    async def process(obj: JSON) -> None:
        nonlocal active, most
        async with limiter.slot():
            active += 1
            most = max(most, active)
            await asyncio.sleep(0)
            active -= 1

    walk = Walk(Api(25).client, process)
    asyncio.run(walk.run(THING))
    assert walk.processed == 25
    assert most == controllers.MAX_CONCURRENT_WRITES


def test_failures_stop_no_other_object_and_only_they_are_retried() -> None:
    calls: list[str] = []

    async def process(obj: JSON) -> None:
        calls.append(obj["metadata"]["name"])
        if len(calls) in (3, 12):
            raise create_api_error(422, "Invalid", calls[-1])

    walk = Walk(Api(25).client, process)
    with pytest.raises(InvalidRequestError, match="t2"):
        asyncio.run(walk.run(THING))
    assert (len(calls), walk.processed) == (25, 23)
    asyncio.run(walk.run(THING))
    assert calls[25:] == ["t2", "t11"]


@pytest.mark.parametrize(
    ("error", "tried"),
    [
        (create_api_error(422, "Invalid", ""), controllers.MAX_FAILURES),
        (create_api_error(429, "TooManyRequests", "", retry_after=3.0), 1),
    ],
)
def test_a_common_failure_ends_the_walk(error: ApiError, tried: int) -> None:
    calls: list[JSON] = []

    async def process(obj: JSON) -> None:
        calls.append(obj)
        raise error

    api = Api(100)
    with pytest.raises(type(error)):
        asyncio.run(Walk(api.client, process).run(THING))
    assert len(calls) == tried


def test_expired_pages() -> None:
    async def process(obj: JSON) -> None:
        calls.append(obj["metadata"]["name"])

    calls: list[str] = []
    api = Api(25)
    api.expired = ["20", "10"]
    asyncio.run(Walk(api.client, process).run(THING))
    assert sorted(calls) == sorted(obj["metadata"]["name"] for obj in api.items)

    # A server that never gives a second page is asked again later, not at once.
    api = Api(25)
    api.expired = ["10", "10"]
    with pytest.raises(ResourceExpiredError):
        asyncio.run(Walk(api.client, process).run(THING))
    assert api.lists == 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock of the migrator."""
    now = [1000.0]
    monkeypatch.setattr(controllers, "monotonic", lambda: now[0])
    monkeypatch.setattr(controllers, "PAUSE_SECONDS", 0.0)
    return now


def test_api_servers_get_time_to_read_a_changed_crd(clock: list[float]) -> None:
    """Proves: CRD-16."""
    api = Api(3)
    api.crd = crd(*BOTH)
    migrator = CRDMigrator(api.client, Metrics(), migration_flags.MigrationOptions())

    def reconciled() -> float | None:
        result: float | None = asyncio.run(migrator.reconcile(NAME)).requeue_after
        return result

    assert reconciled() == controllers.SETTLE_SECONDS
    clock[0] += 4
    assert reconciled() == 1
    # Changed in the meantime: everybody has to learn that first.
    api.crd["metadata"]["generation"] = 2
    assert reconciled() == controllers.SETTLE_SECONDS
    assert not api.patched
    clock[0] += 5
    assert reconciled() == 0
    assert api.patched == ["t0", "t1", "t2"]
    assert api.crd["status"] == {"storedVersions": ["v2"]}
    # From now on nothing is written; the one list is for managed fields.
    api.lists = 0
    assert [reconciled(), reconciled()] == [None, None]
    assert (len(api.patched), api.lists) == (3, 1)


def test_a_missing_crd(caplog: pytest.LogCaptureFixture) -> None:
    migrator = CRDMigrator(Api().client, Metrics(), migration_flags.MigrationOptions())

    assert asyncio.run(migrator.reconcile(NAME)).requeue_after is None
    assert "no such CRD: nothing to migrate" in caplog.messages


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
def test_phases_can_be_skipped(arguments: list[str], rewrites: bool, cleans: bool) -> None:
    options = parse(arguments, ["infrastructure"], [migration_flags.MIGRATION])
    found = migration_flags.migration_options(options)
    assert (found.migrates_storage_version, found.cleans_managed_fields) == (rewrites, cleans)


def test_unknown_phases() -> None:
    with pytest.raises(SystemExit):
        parse(["--skip-crd-migration-phases=All"], ["ipam"], [migration_flags.MIGRATION])
