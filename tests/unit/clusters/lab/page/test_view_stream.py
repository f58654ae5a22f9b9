"""Messages to a tab that has an object open."""

from __future__ import annotations

from pathlib import Path

from capsmith.clusters.conditions import JSON
from capsmith.clusters.lab.page.cluster import WatchedCluster
from capsmith.clusters.lab.page.stream import StreamRequest, ViewStream
from tests.browser.objects import ACME, condition, make, make_cluster, make_machine
from tests.browser.served import SimulatedSource


def put(cluster: WatchedCluster, *objects: JSON) -> None:
    with cluster.change() as store:
        for each in objects:
            each["metadata"]["resourceVersion"] = str(store.revision + 1)
            store.apply(each)


def read_reasons(message: JSON) -> tuple[str, str]:
    """Return what the row and the details of the open object say."""
    rows = {
        row["name"]: row["waiting"]
        for row in message["tree"]["rows"]
        if row["kind"] == "AcmeMachine"
    }
    return rows["one"], message["object"]["waiting"]


def test_details_name_the_secret_of_an_identity_as_the_row_does(tmp_path: Path) -> None:
    """Each kind is watched on its own, so an identity may come after the object that names it."""
    cluster = WatchedCluster()
    machine, infrastructure = make_machine("one", phase="Provisioning")
    infrastructure["spec"]["identityRef"] = {"kind": "AcmeIdentity", "name": "eu"}
    refused = condition("Ready", "False", "401 Unauthorized", "LoginRefused")
    infrastructure["status"]["conditions"] = [refused]
    put(cluster, *make_cluster(), machine, infrastructure)
    selected = f"{ACME.partition('/')[0]}/AcmeMachine/default/one"
    stream = ViewStream(cluster, SimulatedSource(tmp_path), StreamRequest(selected=selected))
    text = "Ready (LoginRefused): 401 Unauthorized"
    assert read_reasons(stream.next_message()) == (text, text)
    for secret in ("login", "other"):
        spec = {"secretRef": {"name": secret}}
        put(cluster, make("AcmeIdentity", "eu", version=ACME, spec=spec))
        named = f"{text} (Secret default/{secret})"
        assert read_reasons(stream.next_message()) == (named, named)
    put(cluster, make("AcmeMachine", "two", version=ACME))
    assert "object" not in stream.next_message()
