"""Informers on an API server whose etcd is restored from a backup: its versions start again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from capsmith_runtime.kube.client import JSON, Selection
from tests.e2e.tools.required import required_toolbox
from tests.runtime.support.following import following
from tests.runtime.support.server import Api
from tests.runtime.support.waiting import eventually

pytestmark = pytest.mark.realapi
LOST_WRITES = 30
"""More writes than happen after the restoration: its versions stay below those seen before."""


@pytest.fixture
def restorable(tmp_path: Path) -> Iterator[Api]:
    """Return a server of its own, because others would lose their objects."""
    server = Api(required_toolbox("the tests of the runtime", ["k8s"]), tmp_path / "servers")
    try:
        server.start()
        yield server
    finally:
        server.stop()


async def test_the_cache_is_what_was_restored(restorable: Api, tmp_path: Path) -> None:
    """Objects that were deleted are back, later ones are gone, and the watch continues."""
    api, kubeconfig = restorable, tmp_path / "kubeconfig"
    kubeconfig.write_text(api.kubeconfig(api.server.url, api.new_token()))
    namespace = api.new_namespace()
    for name in ("changed", "deleted"):
        api.create(namespace, name, size=0)
    backup = api.back_up()
    async with following(kubeconfig, Selection(namespace)) as found:
        api.delete(namespace, "deleted")
        api.create(namespace, "lost")
        for size in range(1, LOST_WRITES):
            api.change(namespace, "changed", size=size)
        latest = api.widgets(namespace)
        await eventually(lambda: _identities(found.informer.items()) == _identities(latest))

        await api.restore(backup)
        api.create(namespace, "new")
        restored = api.widgets(namespace)
        await eventually(
            lambda: _identities(found.informer.items()) == _identities(restored),
            what="the cache is what was restored",
        )
        assert found.names() == {"changed", "deleted", "new"}
        api.delete(namespace, "deleted")
        await eventually(lambda: found.names() == {"changed", "new"}, what="later changes")


def _identities(objects: Iterable[JSON]) -> set[tuple[str, str]]:
    return {(obj["metadata"]["name"], obj["metadata"]["resourceVersion"]) for obj in objects}
