"""Put into a generated repository: changes of other objects that an author's code waits for."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest
from cluster_api_provider_acme import InfraCluster, InfraClusterState, Waiting
from cluster_api_provider_acme.controllers.acme_cluster import AcmeClusterReconciler

from .conftest import Play
from .fake_core import condition, provisioned
from .provider import REGISTRY, Key
from .stage import Stage
from .test_scripted_author import UP, normal

__all__ = ["normal"]

FOR_EVER = None


def test_an_endpoint_from_elsewhere_ends_the_wait(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proves: IC-04, IC-23."""

    def reconcile(self: object, cluster: InfraCluster[Any]) -> InfraClusterState | Waiting:
        if cluster.cluster.control_plane_endpoint is None:
            return Waiting("WaitingForEndpoint", requeue_after=FOR_EVER)
        return InfraClusterState()

    monkeypatch.setattr(AcmeClusterReconciler, "reconcile_normal", reconcile)

    async def story(stage: Stage) -> None:
        key = stage.core.add_cluster()
        expected = ("False", "WaitingForEndpoint")
        await stage.eventually(
            "waiting", lambda: condition(stage.core.infra_cluster(key), "Ready") == expected
        )
        await stage.quiet()
        endpoint = {"spec": {"controlPlaneEndpoint": {"host": "10.0.0.1", "port": 6443}}}
        stage.api.change("Cluster", key, endpoint)
        await stage.eventually("up", lambda: provisioned(stage.core.infra_cluster(key)))

    play(story)


def test_new_credentials_reach_machines_that_are_there(play: Play, normal: Any) -> None:
    script = normal(replace(UP, requeue_after=FOR_EVER))

    async def story(stage: Stage) -> None:
        cluster = await stage.running_cluster()
        await stage.running_machine(cluster)
        (secret,) = [s for s in stage.api.all("Secret") if _is_of_the_identity(s)]
        token = {"data": {"token": base64.b64encode(b"rotated").decode()}}
        name = Key(REGISTRY.namespace, secret["metadata"]["name"])
        stage.api.change("Secret", name, token)
        await stage.eventually("told", lambda: script.calls[-1].credentials == {"token": "rotated"})

    play(story)


def test_an_error_of_any_text_and_length_is_told(play: Play, normal: Any) -> None:
    script = normal(ValueError("\ud800" + "long " * 20_000))

    async def story(stage: Stage) -> None:
        cluster = await stage.running_cluster()
        key = stage.core.add_machine(cluster)
        await stage.eventually("tried again", lambda: len(script.calls) > 1)
        obj = stage.core.infra_machine(key)
        assert condition(obj, "Ready") == ("False", "InternalError")
        (entry,) = (c for c in obj["status"]["conditions"] if c["type"] == "Ready")
        assert entry["message"].encode().startswith(b"ValueError: ?long")
        assert len(entry["message"]) <= 32768

    play(story)


def _is_of_the_identity(secret: Any) -> bool:
    return bool(secret["metadata"]["namespace"] == REGISTRY.namespace)
