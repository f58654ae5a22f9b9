"""A simulated API server that lists and watches the objects of a test."""

from __future__ import annotations

import json
import queue
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from capsmith.clusters.processes.kube import Credentials, KubeClient
from capsmith.clusters.processes.pki import Pki

JSON = dict[str, Any]
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_TYPES: dict[str, tuple[str, str]] = {
    "Cluster": ("cluster.x-k8s.io", "v1beta2"),
    "Machine": ("cluster.x-k8s.io", "v1beta2"),
    "MachineSet": ("cluster.x-k8s.io", "v1beta2"),
    "MachineDeployment": ("cluster.x-k8s.io", "v1beta2"),
    "AcmeCluster": ("infrastructure.cluster.x-k8s.io", "v1alpha1"),
    "AcmeMachine": ("infrastructure.cluster.x-k8s.io", "v1alpha1"),
}


class SimulatedApi:
    """Objects by the path of their kind, and the watches of each kind."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        """Method and path of each request, of any method."""
        self.forbidden: set[str] = set()
        self.may_continue = threading.Event()
        """Cleared to hold back every part of a list but the first."""
        self.may_continue.set()
        self._lock = threading.Lock()
        self._version = 1
        self._objects: dict[str, dict[tuple[str, str], JSON]] = {}
        self._history: dict[str, list[JSON]] = {}
        self._watches: dict[str, list[queue.SimpleQueue[JSON | None]]] = {}
        for kind, (group, version) in _TYPES.items():
            self.put(_crd(kind, group, version), CRDS)

    def put(self, obj: JSON, path: str = "") -> JSON:
        """Create or change an object, and notify the watches of its kind."""
        path = path or path_of(obj)
        metadata = obj["metadata"]
        key = metadata.get("namespace", ""), metadata["name"]
        with self._lock:
            self._version += 1
            stored = {**obj, "metadata": {**metadata, "resourceVersion": str(self._version)}}
            kind = self._objects.setdefault(path, {})
            event = {"type": "MODIFIED" if key in kind else "ADDED", "object": stored}
            kind[key] = stored
            self._tell(path, event)
        return stored

    def delete(self, obj: JSON) -> None:
        """Delete an object."""
        path, metadata = path_of(obj), obj["metadata"]
        with self._lock:
            self._version += 1
            gone = self._objects[path].pop((metadata.get("namespace", ""), metadata["name"]))
            gone["metadata"]["resourceVersion"] = str(self._version)
            self._tell(path, {"type": "DELETED", "object": gone})

    def find(self, path: str) -> JSON | None:
        """Return the object at a path with namespace and name, or None."""
        kind, namespace, name = _split(path)
        with self._lock:
            return self._objects.get(kind, {}).get((namespace, name))

    def list(self, path: str, limit: int = 0, begin: int = 0) -> JSON:
        """Return a kind's objects as a list, or at most ``limit`` of them from an offset."""
        with self._lock:
            items = list(self._objects.get(path, {}).values())
            metadata: JSON = {"resourceVersion": str(self._version)}
        end = begin + (limit or len(items))
        if end < len(items):
            metadata |= {"continue": str(end), "remainingItemCount": len(items) - end}
        return {"metadata": metadata, "items": items[begin:end]}

    def watch(self, path: str, after: int) -> queue.SimpleQueue[JSON | None]:
        """Return a queue with the changes after a version; None in it ends the watch."""
        events: queue.SimpleQueue[JSON | None] = queue.SimpleQueue()
        with self._lock:
            for event in self._history.get(path, []):
                if int(event["object"]["metadata"]["resourceVersion"]) > after:
                    events.put(event)
            self._watches.setdefault(path, []).append(events)
        return events

    def end_watches(self) -> None:
        """End all watches, as a restarting server does."""
        with self._lock:
            for watches in self._watches.values():
                while watches:
                    watches.pop().put(None)

    def resources(self, group: str, version: str) -> JSON:
        """Return the kinds of an API version."""
        if (group, version) == ("", "v1"):
            return {"resources": [{"kind": "Event", "name": "events", "namespaced": True}]}
        if group == "apiextensions.k8s.io":
            name = "customresourcedefinitions"
            kind = "CustomResourceDefinition"
            return {"resources": [{"kind": kind, "name": name, "namespaced": False}]}
        found = [
            {"kind": kind, "name": f"{kind.lower()}s", "namespaced": True, "verbs": ["watch"]}
            for kind, each in _TYPES.items()
            if each == (group, version)
        ]
        return {"resources": found}

    def groups(self) -> JSON:
        """Return the API groups."""
        found = {
            group: {"groupVersion": f"{group}/{version}", "version": version}
            for group, version in _TYPES.values()
        }
        return {"groups": [{"name": name, "preferredVersion": found[name]} for name in found]}

    def _tell(self, path: str, event: JSON) -> None:
        self._history.setdefault(path, []).append(event)
        for events in self._watches.get(path, []):
            events.put(event)


def path_of(obj: JSON) -> str:
    """Return the path of an object's kind."""
    version = obj["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/{obj['kind'].lower()}s"


def merge(target: JSON, patch: JSON) -> JSON:
    """Return an object with a JSON merge patch applied."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = merge(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def _split(path: str) -> tuple[str, str, str]:
    """Return the path of a kind, and the namespace and name, of the path of an object."""
    root, _, rest = path.partition("/namespaces/")
    namespace, plural, name = rest.split("/")
    return f"{root}/{plural}", namespace, name


def _crd(kind: str, group: str, version: str) -> JSON:
    labels = {"cluster.x-k8s.io/provider": "acme", "cluster.x-k8s.io/v1beta2": version}
    return {
        "metadata": {"name": f"{kind.lower()}s.{group}", "labels": labels},
        "spec": {
            "group": group,
            "names": {"kind": kind},
            "versions": [{"name": version, "served": True, "storage": True}],
        },
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    api: SimulatedApi

    def parse_request(self) -> bool:
        is_valid = super().parse_request()
        if is_valid:
            self.api.requests.append((self.command, urlsplit(self.path).path))
        return is_valid

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        path, query = address.path, parse_qs(address.query)
        parts = path.strip("/").split("/")
        if path in self.api.forbidden:
            self._answer({"message": f"{path} is forbidden"}, 403)
        elif "watch" in query:
            self._watch(self.api.watch(path, int(query["resourceVersion"][0])))
        elif path == "/apis":
            self._answer(self.api.groups())
        elif path == "/api/v1":
            self._answer(self.api.resources("", "v1"))
        elif len(parts) == 3 and parts[0] == "apis":
            self._answer(self.api.resources(parts[1], parts[2]))
        else:
            begin = int(query.get("continue", ["0"])[0])
            if begin:
                self.api.may_continue.wait()
            self._answer(self.api.list(path, int(query.get("limit", ["0"])[0]), begin))

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = urlsplit(self.path).path
        found = self.api.find(path)
        if path in self.api.forbidden:
            self._answer({"message": f"{path} is forbidden"}, 403)
        elif found is None:
            self._answer({"message": "not found"}, 404)
        else:
            self._answer(self.api.put(merge(found, body)))

    def do_DELETE(self) -> None:
        found = self.api.find(urlsplit(self.path).path)
        if found is not None:
            self.api.delete(found)
        self._answer({}, 404 if found is None else 200)

    def _answer(self, data: JSON, status: int = 200) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, events: queue.SimpleQueue[JSON | None]) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        # After the end of the watch the last chunk, which is empty.
        while (event := events.get()) is not None:
            self._send_chunk(json.dumps(event).encode() + b"\n")
        self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        except OSError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serve_api(folder: Path) -> Iterator[tuple[SimulatedApi, KubeClient]]:
    """Return a context manager that provides a running API server and a client for it."""
    pki, api = Pki(folder), SimulatedApi()
    handler = type("Handler", (_Handler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pki.serving.cert, pki.serving.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    client = KubeClient(f"https://127.0.0.1:{server.server_port}", Credentials(pki.ca))
    try:
        yield api, client
    finally:
        api.may_continue.set()
        api.end_watches()
        client.close()
        server.shutdown()
        thread.join()
        server.server_close()
