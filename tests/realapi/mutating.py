"""A mutating webhook that applies the same patch to every object."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from capsmith.clusters.processes.kube import JSON, KubeClient
from capsmith.clusters.processes.wait import eventually


@contextmanager
def mutating(
    client: KubeClient,
    group: str,
    resource: str,
    patch: list[JSON],
    folder: Path,
    is_mutated: Callable[[], bool],
) -> Iterator[None]:
    """Serve and register a webhook for a resource; both end with the block.

    ``is_mutated`` tells whether the API server, which caches configurations, calls it.
    """
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "tls.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(patch))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"https://127.0.0.1:{server.server_address[1]}"
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    configuration = _configuration(group, resource, {"url": url, "caBundle": bundle})
    try:
        client.create(configuration)
        eventually(is_mutated)
        yield
    finally:
        client.delete(configuration)
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(patch: list[JSON]) -> type[BaseHTTPRequestHandler]:
    encoded = base64.b64encode(json.dumps(patch).encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            review = json.loads(self.rfile.read(length))
            response = {"uid": review["request"]["uid"], "allowed": True}
            review["response"] = {**response, "patchType": "JSONPatch", "patch": encoded}
            body = json.dumps(review).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Leave the output of the tests alone."""

    return Handler


def _configuration(group: str, resource: str, client: JSON) -> JSON:
    rule = {"apiGroups": [group], "apiVersions": ["*"], "resources": [resource]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": f"mutating-{resource}"},
        "webhooks": [
            {
                "name": f"mutating.{group}",
                "clientConfig": client,
                "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
            }
        ],
    }
