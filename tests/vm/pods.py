"""Pods of a workload cluster, one on each machine, that ask each other."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from capsmith.clusters.processes.kube import JSON
from capsmith.clusters.processes.wait import NotYet, eventually
from tests.e2e.scenario import Scenario
from tests.vm.components import PROBE_IMAGE
from tests.vm.kubeadm import is_ready, list_objects
from tests.vm.lab import MACHINE_SECONDS, Lab


def check_pods(scenario: Scenario, lab: Lab) -> None:
    """A Pod reaches one on another machine by the name of its Service, without translation."""
    list_nodes = partial(list_objects, scenario, lab, "nodes")
    for node in eventually(list_nodes, what="Nodes", timeout=MACHINE_SECONDS):
        name = node["metadata"]["name"]
        lab.apply(scenario, _write_probe(lab, name))
    pods = eventually(lambda: _ready_probes(scenario, lab), what="probes", timeout=MACHINE_SECONDS)
    assert len({each["spec"]["nodeName"] for each in pods}) == len(pods) > 1
    for client in pods:
        for server in pods:
            name = server["metadata"]["name"]
            url = f"http://{name}.default.svc.cluster.local:8080/"
            asked = ("exec", client["metadata"]["name"], "--", "/probe", "get", url)
            answer = eventually(
                partial(lab.kubectl, scenario, *asked), what=url, timeout=MACHINE_SECONDS
            )
            assert answer.startswith(f"{name} "), answer
            if client is not server:
                assert answer.split()[1].startswith(f"{client['status']['podIP']}:"), answer
                lab.timeline.note(f"{client['metadata']['name']} got from {url}: {answer}")


def _write_probe(lab: Lab, node: str) -> Path:
    labels = {"app": f"probe-{node}"}
    container = {"name": "probe", "image": PROBE_IMAGE, "command": ["/probe"]}
    ready = {"httpGet": {"path": "/", "port": 8080}}
    spec = {
        "nodeName": node,
        "containers": [{**container, "readinessProbe": ready}],
        "tolerations": [{"operator": "Exists"}],
    }
    metadata = {"name": labels["app"], "labels": labels}
    items = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": labels["app"]},
            "spec": {"selector": labels, "ports": [{"port": 8080}]},
        },
    ]
    file = lab.stack.folder / f"{node}.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


def _ready_probes(scenario: Scenario, lab: Lab) -> list[JSON]:
    pods = list_objects(scenario, lab, "pods", "--namespace=default")
    if not all(is_ready(each) for each in pods):
        raise NotYet(f"{[each['status'] for each in pods]}")
    return pods
