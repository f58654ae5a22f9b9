"""Stored objects follow the storage version of their CRD (CRD-16)."""

from __future__ import annotations

import asyncio

import pytest

from capsmith_runtime.errors import create_api_error
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.migration.options import MIGRATION
from capsmith_runtime.options import parse
from capsmith_runtime.testing.conformance.base import scenario
from tests.runtime.scenarios.migration.base import MigrationConformance
from tests.runtime.scenarios.migration.environment import CRD, MigrationEnvironment, versions
from tests.runtime.scenarios.providers import provider, run_with

PROVIDER = provider("two-contracts")


@run_with("two-contracts", "everything")
class TestStorageVersionMigration(MigrationConformance):
    """Stored objects follow the storage version of their CRD (CRD-16)."""

    @scenario
    async def test_everything_is_rewritten_before_a_crd_reports_it(
        self, env: MigrationEnvironment
    ) -> None:
        """Proves: CRD-16."""
        before = env.contents()
        env.begin()
        await env.eventually("everything is rewritten", env.done)
        await env.quiet()

        assert not env.api.left
        assert not env.api.stored
        assert set(env.api.rewritten().values()) == {1}
        assert env.contents() == before

        # A new process finds nothing to rewrite.
        count = len(env.api.rewritten())
        await env.kill()
        env.begin()
        await env.quiet()
        assert env.api.rewritten().total() == count == env.number

    @scenario
    async def test_pages_that_expire_are_read_again(self, env: MigrationEnvironment) -> None:
        env.api.expiring = 2
        env.begin()
        await env.eventually("everything is rewritten", env.done)

        assert env.api.expiring == 0
        assert not env.api.left
        assert set(env.api.rewritten().values()) == {1}

    @scenario
    async def test_a_crd_reports_nothing_while_an_object_is_left(
        self, env: MigrationEnvironment
    ) -> None:
        """Proves: CRD-16."""
        kind = env.crds[0]["spec"]["names"]["kind"]
        refused: list[str] = []

        def fault(verb: str, of: str, body: JSON) -> None:
            if of == kind and len(refused) < 3:
                refused.append(verb)
                raise create_api_error(500, "InternalError", "the webhook does not answer")

        env.api.fault = fault
        env.begin()
        await env.eventually("everything is rewritten", env.done)

        assert len(refused) == 3
        assert not env.api.left
        # What had been rewritten was left alone.
        assert env.api.rewritten().total() == env.number + len(refused)

    @pytest.mark.parametrize(
        "error", [create_api_error(409, "Conflict", ""), create_api_error(404, "NotFound", "")]
    )
    @scenario
    async def test_who_else_writes_an_object_has_rewritten_it(
        self, env: MigrationEnvironment, error: Exception
    ) -> None:
        def fault(verb: str, of: str, body: JSON) -> None:
            if of != CRD:
                env.api.stored.clear()
                raise error

        env.api.fault = fault
        env.begin()
        await env.eventually("everything counts as rewritten", env.done)
        assert set(env.api.rewritten().values()) == {1}

    @scenario
    async def test_killed_in_the_middle(self, env: MigrationEnvironment) -> None:
        """Proves: CRD-16."""
        middle = asyncio.Event()

        def fault(verb: str, of: str, body: JSON) -> None:
            if env.api.rewritten().total() > 3:
                middle.set()
                raise create_api_error(500, "InternalError", "from here on nothing is written")

        env.api.fault = fault
        env.begin()
        await middle.wait()
        await env.kill()
        assert 0 < len(env.api.stored) < env.number
        env.api.fault = None
        env.begin()
        await env.eventually("everything is rewritten", env.done)
        assert not env.api.left

    @scenario
    async def test_another_storage_version_meanwhile_begins_again(
        self, env: MigrationEnvironment
    ) -> None:
        crd, *_ = env.crds
        name, (storage, other) = NamespacedName("", crd["metadata"]["name"]), versions(crd)
        turned = [{**each, "storage": each["name"] == other} for each in crd["spec"]["versions"]]

        def fault(verb: str, of: str, body: JSON) -> None:
            if of == crd["spec"]["names"]["kind"]:
                env.api.fault = None
                env.api.change(CRD, name, {"spec": {"versions": turned}})

        env.api.fault = fault
        env.begin()
        await env.eventually("all others are done", lambda: len(env.stored_versions()) > 0)

        def updates() -> list[str]:
            found = env.api.find(CRD, name)
            assert found is not None
            stored: list[str] = found["status"]["storedVersions"]
            return stored

        await env.eventually("the CRD is updated", lambda: len(updates()) == 1)
        assert updates() == [other] != [storage]

    @scenario
    async def test_managed_fields_of_a_version_that_is_no_longer_served(
        self, env: MigrationEnvironment
    ) -> None:
        """Proves: CRD-16."""
        crd = env.crds[0]
        (kind, first), (_, second) = _owned(env, crd)
        env.begin()
        await env.eventually("everything is rewritten", env.done)
        await env.quiet()
        assert _managers(env, kind, first) == ["old", "new"]

        def fault(verb: str, of: str, body: JSON) -> None:
            if of == kind:
                # Another client comes first, and its change must not be lost.
                env.api.fault = None
                entries = [*_entries(env, kind, first), _entry("other", crd, storage=True)]
                env.api.change(kind, first, {"metadata": {"managedFields": entries}})

        env.api.fault = fault
        env.serve_no_more(crd)
        await env.eventually("both are clean", lambda: env.owned(crd) == {versions(crd)[0]})
        await env.quiet()

        assert _managers(env, kind, first) == ["new", "other"]
        (seed,) = _entries(env, kind, second)
        assert (seed["manager"], seed["operation"]) == ("old", "Apply")
        assert seed["fieldsV1"] == {"f:metadata": {"f:name": {}}}
        assert env.done()

    @scenario
    async def test_phases_can_be_left_out(self, env: MigrationEnvironment) -> None:
        phases = "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields"
        options = parse([phases], [env.component.label], [MIGRATION])
        env.begin(**options.extra)
        await env.quiet()

        assert not env.api.rewritten()
        assert not env.done()
        assert env.api.looked == 0

    @scenario
    async def test_without_the_permission_that_is_told_once(
        self, env: MigrationEnvironment, caplog: pytest.LogCaptureFixture
    ) -> None:
        env.api.allowed = False
        env.begin()
        await env.eventually("it is tried again", lambda: env.api.looked > 2)
        lines = [each for each in caplog.messages if "cannot be migrated" in each]
        assert len(lines) == 1

        env.api.allowed = True
        await env.eventually("everything is rewritten", env.done)


def _owned(env: MigrationEnvironment, crd: JSON) -> list[tuple[str, NamespacedName]]:
    """Set managed fields: of both versions on one object, of the old version only on another."""
    kind = crd["spec"]["names"]["kind"]
    old, new = (_entry(name, crd, storage=name == "new") for name in ("old", "new"))
    found = [each for each in env.api.stored if each[0] == kind][:2]
    for each, entries in zip(found, ([old, new], [old]), strict=True):
        env.api.change(*each, {"metadata": {"managedFields": entries}})
    return found


def _entry(manager: str, crd: JSON, *, storage: bool) -> JSON:
    version = versions(crd)[0 if storage else 1]
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": f"{crd['spec']['group']}/{version}",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {}},
    }


def _entries(env: MigrationEnvironment, kind: str, key: NamespacedName) -> list[JSON]:
    obj = env.api.find(kind, key)
    assert obj is not None
    found: list[JSON] = obj["metadata"]["managedFields"]
    return found


def _managers(env: MigrationEnvironment, kind: str, key: NamespacedName) -> list[str]:
    return [entry["manager"] for entry in _entries(env, kind, key)]
