"""The page's server: who gets an answer, what is sent, and what is requested of the API server."""

from __future__ import annotations

import http.client
import json
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from capsmith.clusters.conditions import JSON
from capsmith.clusters.lab.page.app import load_assets
from capsmith.clusters.lab.page.stream import StreamRequest
from capsmith.clusters.lab.page.watches import rank_version
from tests.browser.api_server import CRDS
from tests.browser.objects import copy, make_cluster, make_event, make_machine
from tests.browser.served import SECONDS, ServedPage, serve_page

STREAM, ACTION = "/api/stream", "/api/action"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    with serve_page(tmp_path_factory.mktemp("page")) as served:
        for obj in [*make_cluster(), *make_machine("one")]:
            served.api.put(obj)
        yield served


def request(page: ServedPage, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(page.host, timeout=SECONDS)
    with closing(connection):
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, b"{}" if method == "POST" else None, sent)
        response = connection.getresponse()
        if response.status != 200:
            response.read()
        return response


def allowed(page: ServedPage) -> dict[str, str]:
    return {"Authorization": f"Bearer {page.key}", "Origin": page.address.rstrip("/")}


@contextmanager
def follow(page: ServedPage, **shown: object) -> Iterator[Callable[[Callable[[JSON], bool]], JSON]]:
    """Return a context manager with a function that reads until a message has what is awaited."""
    connection = http.client.HTTPConnection(page.host, timeout=SECONDS)
    with closing(connection):
        connection.request("POST", STREAM, json.dumps(shown), allowed(page))
        response = connection.getresponse()
        assert response.status == 200

        def wait(is_it: Callable[[JSON], bool]) -> JSON:
            while line := response.readline():
                message: JSON = json.loads(line)
                if is_it(message):
                    return message
            raise AssertionError("the stream has ended")

        yield wait


def names(message: JSON) -> list[str]:
    return [row["name"] for row in message.get("tree", {}).get("rows", [])]


def test_changes_are_sent_as_the_watch_reports_them(page: ServedPage) -> None:
    two, infrastructure = make_machine("two", phase="Provisioning", message="no quota")
    with follow(page, selected="cluster.x-k8s.io/Machine/default/two") as wait:
        wait(lambda message: "one" in names(message) or "order" in message.get("tree", {}))
        page.api.put(two)
        page.api.put(infrastructure)
        message = wait(lambda message: bool(message.get("object")))
        assert message["object"]["waiting"] == "InfrastructureReady: no quota"
        changed = {**copy(two), "status": {"phase": "Running"}}
        page.api.put(changed)
        message = wait(lambda message: bool(message.get("object")))
        assert "+  phase: Running" in message["object"]["difference"]
        page.api.put(make_event(two, "e1", "boom"))
        message = wait(lambda message: bool(message.get("object")))
        assert [each["message"] for each in message["object"]["events"]] == ["boom"]
        # A watch that ends is taken up where it was, and may report the object once more before.
        page.api.end_watches()
        page.api.delete(changed)
        wait(lambda message: "object" in message and message["object"] is None)


def test_logs_are_followed_and_filtered(page: ServedPage) -> None:
    with follow(page, selected="a/AcmeMachine/default/one", onlySelected=True) as wait:
        wait(lambda message: "lab" in message)
        with page.source.log.open("a") as log:
            log.write("INFO other\nERROR failed key=default/one token=s3cretvalue\n")
        (line,) = wait(lambda message: "logs" in message)["logs"]
        assert line["text"].startswith("ERROR failed key=default/one")
        assert "s3cretvalue" not in line["text"]


def test_only_reads_are_requested_and_never_secrets(page: ServedPage) -> None:
    assert {method for method, _ in page.api.requests} == {"GET"}
    assert not [path for _, path in page.api.requests if "secret" in path]


def test_without_permission_for_crds_kinds_are_those_of_the_groups(tmp_path: Path) -> None:
    with serve_page(tmp_path) as page:
        page.api.forbidden |= {CRDS, "/apis/cluster.x-k8s.io/v1beta2/machinesets"}
        page.api.put(make_cluster()[0])
        shown: set[str] = set()

        def show(message: JSON) -> bool:
            # The Cluster and the problem may come in one message, or in two in any order.
            shown.update(name for name in names(message) if name == "demo")
            problems = [each["message"] for each in message.get("problems", [])]
            shown.update("problem" for text in problems if "machinesets" in text)
            return shown == {"demo", "problem"}

        with follow(page) as wait:
            wait(show)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Host": "localhost"}, 421),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_what_another_page_or_user_sends_is_refused(
    page: ServedPage, headers: dict[str, str], status: int
) -> None:
    sent = {name.replace("-", "_"): value for name, value in {**allowed(page), **headers}.items()}
    assert request(page, "POST", STREAM, **sent).status == status
    assert request(page, "POST", ACTION, **sent).status == status


@pytest.mark.parametrize("path", [STREAM, ACTION])
def test_a_request_that_changes_something_needs_an_origin(page: ServedPage, path: str) -> None:
    sent = {"Authorization": f"Bearer {page.key}"}
    assert request(page, "POST", path, **sent).status == 403
    assert request(page, "GET", path, **allowed(page)).status == 404


def test_a_page_that_only_reads_does_nothing(page: ServedPage) -> None:
    before = len(page.api.requests)
    bodies: tuple[object, ...] = (
        {"action": "delete", "object": "cluster.x-k8s.io/Cluster/default/demo"},
        {},
        [1],
    )
    for body in bodies:
        connection = http.client.HTTPConnection(page.host, timeout=SECONDS)
        with closing(connection):
            connection.request("POST", ACTION, json.dumps(body), allowed(page))
            assert connection.getresponse().status == 409
    assert {method for method, _ in page.api.requests[before:]} <= {"GET"}


def test_invalid_requests_are_refused(page: ServedPage) -> None:
    for body in (b"{", b"[" * 100_000, b'"' + b"x" * 300_000 + b'"'):
        connection = http.client.HTTPConnection(page.host, timeout=SECONDS)
        with closing(connection):
            connection.request("POST", STREAM, body, allowed(page))
            assert connection.getresponse().status == 400
    assert StreamRequest.from_data([1]) == StreamRequest()


def test_files_are_sent_to_everyone_and_nothing_else_is(page: ServedPage) -> None:
    response = request(page, "GET", "/")
    assert response.status == 200
    policy = response.getheader("Content-Security-Policy") or ""
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "unsafe" not in policy
    assert response.getheader("Referrer-Policy") == "no-referrer"
    for path in ("/vendor/vendor.yaml", "/../serve.py", "/%2e%2e/serve.py", "/page.html"):
        assert request(page, "GET", path).status == 404
    assert "page.js" in load_assets()


def test_the_key_is_in_a_private_file_only(
    page: ServedPage, capfd: pytest.CaptureFixture[str]
) -> None:
    assert stat.S_IMODE(page.opener.stat().st_mode) == 0o600
    assert len(page.key) >= 32
    request(page, "GET", f"/?{page.key}")
    captured = capfd.readouterr()
    assert page.key not in captured.out + captured.err


def test_the_file_is_removed_when_the_page_ends(tmp_path: Path) -> None:
    with serve_page(tmp_path) as page:
        assert page.opener.exists()
    assert not page.opener.exists()


def test_the_file_of_a_later_page_of_the_same_lab_remains(tmp_path: Path) -> None:
    with serve_page(tmp_path) as page:
        later = page.opener.read_text().replace(page.key, "the key of the later page")
        page.opener.write_text(later)
    assert page.opener.read_text() == later


def test_an_opener_that_is_gone_is_no_error(tmp_path: Path) -> None:
    with serve_page(tmp_path) as page:
        page.opener.unlink()
    assert not page.opener.exists()


def test_versions_are_ranked_as_the_api_server_does() -> None:
    versions = ["v1alpha1", "other", "v2", "v1beta2", "v1", "v1beta1", "v10"]
    ranked = ["v10", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "other"]
    assert sorted(versions, key=rank_version, reverse=True) == ranked
