"""Stored objects follow the storage version: real etcd, API server and webhook, shipped role."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from capsmith.clusters.processes.kube import JSON, ApiError
from capsmith.clusters.processes.pki import Pki
from capsmith.clusters.processes.servers import Etcd
from capsmith.clusters.processes.tools.catalogue import core_module, default_core
from capsmith.clusters.processes.wait import eventually, settled
from tests.e2e.tools.required import required_toolbox
from tests.golden.cases import EXAMPLES, Case, generated
from tests.realapi.conftest import NewServer
from tests.realapi.managers import Manager, install_core_crds
from tests.realapi.migrating import NEW, OLD, Releases, named
from tests.realapi.unrest import Unrest

MACHINES = 300
"""More than a page of the list."""
TROUBLED_MACHINES = 300
REWRITTEN = "stored_objects_rewritten_total"
REQUESTS_AN_OBJECT = 1.1
"""One to rewrite it, and a share of the pages of the list."""
_ALONE = "--leader-elect=false"
_CONVERTING = (_ALONE, "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields")


@pytest.fixture
def releases(
    request: pytest.FixtureRequest, new_server: NewServer, etcd: Etcd, tmp_path: Path
) -> Iterator[Releases]:
    """Return releases of which the one with a single API version is installed on its own server."""
    tools = required_toolbox("the tests on a real API server", ["k8s", core_module(default_core())])
    pki = Pki(tmp_path / "pki")
    server = new_server(request.node.originalname.replace("_", "-"), pki)
    repository = tmp_path / "repository"
    generated(Case("two-contracts", EXAMPLES / "two-contracts" / "provider.yaml"), repository)
    try:
        server.start()
        core = [f"{kind}.cluster.x-k8s.io" for kind in ("clusters", "machines", "machinepools")]
        install_core_crds(server.client, tools, default_core(), *core)
        made = Releases(server, etcd, pki, repository)
        made.install_old()
        yield made
    finally:
        server.stop()


def test_a_version_comes_and_another_goes(releases: Releases) -> None:
    """Proves: CRD-16, RB-06."""
    releases.create_all_kinds(MACHINES)
    _applied(releases, "HarbourMachine", "m0", OLD)
    _applied(releases, "HarbourCluster", "c0", OLD)
    before = releases.contents(OLD)
    assert releases.versions_in_etcd() == Counter({OLD: len(before)})

    releases.install_new()
    assert releases.stored_versions() == {OLD, NEW}
    manager = releases.manager(0, _ALONE)
    with _running(manager):
        eventually(lambda: releases.stored_versions() == {NEW}, timeout=600)
        assert releases.versions_in_etcd() == Counter({NEW: len(before)})
        assert releases.contents(OLD) == before
        assert manager.total(REWRITTEN) == len(before)
        _nothing_is_asked(manager)
        requests = manager.requests()
        assert requests["patch_status"] + requests["patch"] < len(before) * REQUESTS_AN_OBJECT

        before = releases.contents(NEW)
        releases.serve_no_more("HarbourCluster")
        eventually(lambda: releases.owned_versions("HarbourMachine") == {NEW}, timeout=600)
        assert releases.contents(NEW) == before
        _nothing_is_asked(manager)
        assert manager.total(REWRITTEN) == len(before)

    releases.drop()
    assert releases.contents(NEW) == before
    # A client whose managed fields have been cleaned can still apply.  One that has skipped a
    # release cannot, until the manager has seen that the version is gone.
    _applied(releases, "HarbourMachine", "m0", NEW)
    with pytest.raises(ApiError, match="v1alpha1"):
        _applied(releases, "HarbourCluster", "c0", NEW)
    with _running(manager):
        eventually(lambda: releases.owned_versions("HarbourCluster") == {NEW}, timeout=300)
        _applied(releases, "HarbourCluster", "c0", NEW)
    assert not manager.complaints()


# tests/runtime/scenarios/migration kills a manager in the middle, among others that write.
@pytest.mark.exhaustive
def test_killed_and_not_alone(releases: Releases) -> None:
    """Of two leaders one dies, so does the webhook, and others change and delete objects.

    Proves: CRD-16.
    """
    releases.create_all_kinds(TROUBLED_MACHINES)
    releases.install_new()
    converter = releases.manager(0, *_CONVERTING)
    leader, standby = releases.manager(1), releases.manager(2)
    stranger = releases.manager(3, _ALONE)
    with ExitStack() as stack:
        for manager in (converter, leader):
            stack.enter_context(_running(manager))
        eventually(lambda: leader.leads, timeout=120)
        for manager in (standby, stranger):
            stack.enter_context(_running(manager))
        unrest = stack.enter_context(Unrest(releases, TROUBLED_MACHINES))
        eventually(lambda: leader.total(REWRITTEN) > 30, timeout=300, interval=0.02)
        # Without a webhook nothing is rewritten, however long the look at what is left takes.
        converter.process.kill()
        leader.process.kill()
        assert standby.total(REWRITTEN) == 0
        assert releases.versions_in_etcd()[OLD] > 0
        time.sleep(2)
        assert OLD in releases.stored_versions()
        converter.start()
        releases.expire_lease()

        eventually(lambda: releases.stored_versions() == {NEW}, timeout=600)
        assert set(releases.versions_in_etcd()) == {NEW}
        unrest.stop()
        unrest.check()
        eventually(lambda: standby.leads, timeout=120)
        assert converter.total(REWRITTEN) == 0


def _nothing_is_asked(manager: Manager) -> None:
    """Watches go on; nothing else happens by itself."""
    settled(
        lambda: {**manager.requests(), "watch": 0},
        seconds=4,
        timeout=120,
        what="the number of requests",
    )


@contextmanager
def _running(manager: Manager) -> Iterator[Manager]:
    manager.start()
    try:
        yield manager
    finally:
        manager.process.stop()


def _applied(releases: Releases, kind: str, name: str, version: str) -> JSON:
    """By another field manager, which only sets labels."""
    obj = named(kind, name, version)
    obj["metadata"]["labels"] = {"by": version}
    return releases.client.apply(obj, manager="another")
