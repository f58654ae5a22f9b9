"""Coroutines as tests, and a real API server behind a proxy."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import capsmith_runtime
from capsmith_runtime.kube.client import JSON, NamespacedName
from capsmith_runtime.kube.store import Cache, Delta
from tests.e2e.tools.required import required_toolbox
from tests.resting import shared_servers
from tests.runtime.support.operator import Site, stopped
from tests.runtime.support.proxy import FaultProxy
from tests.runtime.support.server import Api

_TEST_SECONDS = 900.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and "api" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.realapi)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, on an event loop of its own, within bounds."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, _TEST_SECONDS))
    return True


@pytest.fixture(autouse=True)
def no_cached_secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a cache of any component got the data of a Secret."""
    cached: list[str] = []
    put = Cache._put

    def checked(self: Cache, key: NamespacedName, obj: JSON) -> Delta:
        if obj.get("kind") == "Secret" and {"data", "stringData"} & obj.keys():
            cached.append(str(key))
        return put(self, key, obj)

    monkeypatch.setattr(Cache, "_put", checked)
    yield
    assert cached == []


@pytest.fixture(scope="session")
def runtime_folder() -> Path:
    """Return the folder that PYTHONPATH must name for a process that uses the runtime."""
    return Path(capsmith_runtime.__file__).parents[1]


@pytest.fixture(scope="session")
def api(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    server = Api(
        required_toolbox("the tests of the runtime", ["k8s"]), tmp_path_factory.mktemp("runtime")
    )
    try:
        server.start()
        with shared_servers(request, *server.processes, wait_ready=server.wait_ready):
            yield server
    finally:
        server.stop()


@pytest.fixture
def proxy(api: Api) -> Iterator[FaultProxy]:
    made = api.new_proxy()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def namespace(api: Api) -> str:
    return api.new_namespace()


@pytest.fixture
def kubeconfig(api: Api, proxy: FaultProxy, tmp_path: Path) -> Path:
    """Return a kubeconfig that reaches the API server through the proxy, as the operator."""
    path = tmp_path / "kubeconfig"
    path.write_text(api.kubeconfig(proxy.url, api.new_token()))
    return path


@pytest.fixture
def site(
    api: Api, kubeconfig: Path, namespace: str, runtime_folder: Path, tmp_path: Path
) -> Iterator[Site]:
    """Return a site for the test's own operators, which are stopped after it."""
    with stopped(Site(api, namespace, kubeconfig, runtime_folder, tmp_path)) as made:
        yield made
