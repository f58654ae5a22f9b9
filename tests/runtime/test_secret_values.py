"""Credentials, keys and bootstrap data are not in the text that values become in messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from capsmith_runtime.addon import Deleted
from capsmith_runtime.api.serialization import encode_status
from capsmith_runtime.bootstrap import BootstrapData, CertificatePair, cloud_config
from capsmith_runtime.contract.model import Endpoint
from capsmith_runtime.contract.versions import STATUS_WRITERS
from capsmith_runtime.controlplane import ClusterCredentials, ManagedControlPlaneState
from capsmith_runtime.controlplane.api import ControlPlaneReconciler, ControlPlaneScope
from capsmith_runtime.controlplane.control_plane import HookCallError
from capsmith_runtime.controlplane.hooks import HookCaller
from capsmith_runtime.infrastructure import Credentials
from capsmith_runtime.kube.events import EventRecorder
from capsmith_runtime.kube.executor import HandlerExecutor
from capsmith_runtime.kube.metrics import Metrics
from capsmith_runtime.reconcile.context import ControllerContext
from capsmith_runtime.reconcile.results import describe_unexpected_result
from capsmith_runtime.reconcile.session_pools import SessionPools
from capsmith_runtime.testing import bootstrap, controlplane, infrastructure
from capsmith_runtime.testing.fake_api import FakeApi
from tests.runtime.extension.hook_calls import CREATE, Author, call
from tests.runtime.infrastructure.scripted_provider import PROVIDER

SECRET = "correct-horse"
CREDENTIALS = {"token": SECRET}
DATA = BootstrapData(SECRET.encode(), "cloud-config")
PAIR = CertificatePair("certificate", SECRET)
OBJECT = {"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "n", "uid": "1"}}

VALUES: dict[str, object] = {
    "credentials": Credentials(CREDENTIALS),
    "bootstrap data": DATA,
    "certificate": PAIR,
    "cluster": infrastructure.infra_cluster({}, credentials=CREDENTIALS),
    "deleted cluster": infrastructure.infra_cluster_deletion({}, credentials=CREDENTIALS),
    "machine": infrastructure.infra_machine({}, credentials=CREDENTIALS, bootstrap=SECRET.encode()),
    "deleted machine": infrastructure.infra_machine_deletion({}, credentials=CREDENTIALS),
    "pool": infrastructure.infra_machine_pool(
        {}, credentials=CREDENTIALS, bootstrap=SECRET.encode()
    ),
    "deleted pool": infrastructure.infra_machine_pool_deletion({}, credentials=CREDENTIALS),
    "bootstrap config": bootstrap.bootstrap_config({}, certificates={"ca": PAIR}),
    "bootstrap config of a pool": bootstrap.pool_bootstrap_config({}, previous=DATA),
    "token of a cluster": ClusterCredentials(token=SECRET),
    "key of a cluster": ClusterCredentials(certificate=b"certificate", key=SECRET.encode()),
    "control plane": ManagedControlPlaneState(
        endpoint=Endpoint("host"), version="v1.34.0", kubeconfig=SECRET
    ),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    "text",
    [
        repr,
        str,
        "{}".format,
        lambda value: f"{[value]}",
        lambda value: json.dumps(value, default=str),
    ],
)
def test_text_of_a_value_holds_no_secret(value: object, text: Callable[[object], str]) -> None:
    assert SECRET not in text(value)


def test_credentials_are_a_mapping() -> None:
    credentials = Credentials({"user": "admin", "token": SECRET})

    assert credentials["token"] == SECRET
    assert dict(credentials) == {"user": "admin", "token": SECRET}
    assert credentials == {"user": "admin", "token": SECRET}
    assert "user" in repr(credentials)
    assert "admin" not in repr(credentials)


def test_bootstrap_data_that_are_not_text_are_not_in_the_error() -> None:
    data = BootstrapData(b"\xff" + SECRET.encode(), "cloud-config")
    with pytest.raises(ValueError, match="not UTF-8") as caught:
        _ = data.text

    assert SECRET not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_a_message_about_a_result_names_only_its_type() -> None:
    message = describe_unexpected_result(
        asyncio.sleep, Credentials(CREDENTIALS), Deleted, type(None)
    )

    assert message == "sleep must return Deleted or None, not Credentials"


def test_a_wrong_status_is_named_by_its_type() -> None:
    with pytest.raises(TypeError, match="not dict") as caught:
        encode_status({"password": SECRET})

    assert SECRET not in str(caught.value)


def test_a_value_that_no_cloud_config_can_hold_is_named_by_its_type() -> None:
    with pytest.raises(TypeError, match="bytes") as caught:
        cloud_config({"write_files": [SECRET.encode()]})

    assert SECRET not in str(caught.value)


def test_a_result_of_a_control_plane_hook_is_named_by_its_type() -> None:
    class Wrong(ControlPlaneReconciler[Any]):
        def health(self, control_plane: ControlPlaneScope[Any]) -> Any:
            return SECRET

    async def health() -> None:
        metrics = Metrics()
        api = FakeApi("v1beta2", PROVIDER.manifests)
        events = EventRecorder(api, "c", "i", metrics)
        executor = HandlerExecutor(metrics)
        context = ControllerContext(
            client=api,
            label="c",
            contract="v1beta2",
            executor=executor,
            sessions=SessionPools(executor),
            events=events,
            writer=STATUS_WRITERS["v1beta2"],
        )
        caller = HookCaller(Wrong(), context)
        await caller.health(OBJECT, controlplane.control_plane({}))

    with pytest.raises(HookCallError, match="must return ControlPlaneHealth or Waiting, not str"):
        asyncio.run(health())


def test_a_response_of_an_extension_is_named_by_its_type(caplog: pytest.LogCaptureFixture) -> None:
    call(Author(SECRET), CREATE)

    assert "not str" in caplog.text + str([vars(each) for each in caplog.records])
    assert SECRET not in caplog.text + str([vars(each) for each in caplog.records])
