"""A provider that runs as Pods: what is watched, and what is known if nothing answers."""

from __future__ import annotations

from collections.abc import Callable
from http.client import RemoteDisconnected
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from capsmith.clusters.lab.connection import LabConnection
from capsmith.clusters.lab.pods import InstalledPods
from capsmith.clusters.lab.provider import ProviderRepository
from capsmith.clusters.lab.state import ComponentState
from capsmith.clusters.processes.component import ProviderRelease
from capsmith.clusters.processes.kube import ApiError

MANIFEST = "kind: Namespace\nmetadata: {name: acme-system}\n"


class Client:
    """An API server whose answers are what it is given."""

    def __init__(self) -> None:
        self.answer: Callable[[str], Any] = lambda kind: []

    def list(self, version: str, kind: str, namespace: str) -> Any:
        """Return the given answer."""
        return self.answer(kind)


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def pods(tmp_path: Path, client: Client) -> InstalledPods:
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / "infrastructure-components.yaml").write_text(MANIFEST)
    state = SimpleNamespace(node=str(tmp_path / "node"))
    lab = SimpleNamespace(state=state, folder=tmp_path, client=client)
    provider = ProviderRepository(tmp_path, {"name": "acme"}, "acme")
    return InstalledPods(provider, cast(LabConnection, lab), lambda text: None)


def test_a_change_of_the_dockerfile_is_seen(pods: InstalledPods, tmp_path: Path) -> None:
    before = pods.code_stamp()
    (tmp_path / "Dockerfile").write_text("FROM scratch")
    assert pods.code_stamp() != before


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "refused"),
        RemoteDisconnected("closed"),
        ApiError("GET", "/apis", 503, "starting"),
    ],
    ids=["refused", "closed", "503"],
)
def test_the_state_is_unknown_while_the_api_server_does_not_respond(
    pods: InstalledPods, client: Client, error: Exception
) -> None:
    def fail(kind: str) -> Any:
        raise error

    client.answer = fail
    pods.start(lambda: None)
    assert [(each.name, each.state) for each in pods.components] == [
        ("manager-infrastructure", "unknown")
    ]
    deployment = {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    client.answer = lambda kind: [deployment] if kind == "Deployment" else []
    pods.start(lambda: None)
    assert [each.state for each in pods.components] == ["running"]

    client.answer = fail
    pods.start(lambda: None)
    (state,) = pods.components
    assert (state.state, state.name) == ("unknown", "manager-infrastructure")
    assert str(error) in state.reason


class _Stopped(Exception):
    """Raised where an installation would build an image."""


def test_managers_are_shown_while_their_image_is_built(
    pods: InstalledPods, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed installation, nothing is known about the Pods."""

    def build(release: ProviderRelease) -> None:
        raise _Stopped

    release = ProviderRelease(tmp_path / "release", "v0.1.0")
    (tmp_path / "metadata.yaml").write_text("releaseSeries: [{major: 0, minor: 1}]")
    monkeypatch.setattr(ProviderRepository, "release", lambda *_, **__: release)
    monkeypatch.setattr(pods, "_add_images", build)
    seen: list[ComponentState] = []
    with pytest.raises(_Stopped):
        pods.install(lambda: seen.extend(pods.components))
    assert [(each.name, each.state) for each in seen] == [("manager-infrastructure", "starting")]
    pods.stop()
    assert pods.components == ()
