"""Responses of the validating webhook, with a validator whose results the tests choose."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from capsmith_runtime.admission import AdmissionWarning, FieldError, Validator
from capsmith_runtime.admission.reads import MAX_RESULTS
from capsmith_runtime.kube.executor import HandlerExecutor
from tests.runtime.admission.requests import (
    GROUP,
    author,
    review,
    send,
    template,
    too_large,
    validated,
    widget,
)

MOVED = {"clusterctl.cluster.x-k8s.io/delete-for-move": ""}
ERROR = FieldError("size", "too small")
DELETED = "2026-01-01T00:00:00Z"


def test_all_errors_are_reported_with_their_paths() -> None:
    disks = [{"sizeGiB": 500}, {"sizeGiB": 20}, {"sizeGiB": 200}]
    answer = validated(author(too_large), "CREATE", widget({"size": "s", "disks": disks}))

    assert answer["allowed"] is False
    assert (answer["status"]["code"], answer["status"]["reason"]) == (422, "Invalid")
    assert answer["status"]["message"] == (
        f'Widget.{GROUP} "w" is invalid: [spec.disks[0].sizeGiB: Invalid value: must be at most '
        "100, spec.disks[2].sizeGiB: Invalid value: must be at most 100]"
    )
    details = answer["status"]["details"]
    assert (details["group"], details["kind"], details["name"]) == (GROUP, "Widget", "w")
    assert details["causes"][1] == {
        "field": "spec.disks[2].sizeGiB",
        "message": "Invalid value: must be at most 100",
        "reason": "FieldValueInvalid",
    }


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FieldError("zone", "x", "FieldValueRequired"), "spec.zone: Required value: x"),
        (FieldError("zone", "x", "FieldValueForbidden"), "spec.zone: Forbidden: x"),
        (FieldError("zone", "x", "FieldValueNotSupported"), "spec.zone: Unsupported value: x"),
        (FieldError("", "x", "FieldValueDuplicate"), "spec: Duplicate value: x"),
        (FieldError("zone", "\ud800"), "spec.zone: Invalid value: ?"),
    ],
)
def test_reasons_have_the_words_of_kubernetes(error: FieldError, text: str) -> None:
    answer = validated(author([error]), "CREATE", widget({"size": "s"}))

    assert answer["status"]["message"].endswith(f"is invalid: {text}")


def test_a_template_is_validated_like_its_objects() -> None:
    validator = author(too_large)
    answer = validated(validator, "CREATE", template({"size": "s", "disks": [{"sizeGiB": 500}]}))

    (cause,) = answer["status"]["details"]["causes"]
    assert cause["field"] == "spec.template.spec.disks[0].sizeGiB"
    assert answer["status"]["message"].startswith(f'WidgetTemplate.{GROUP} "w" is invalid')
    assert validator.seen[0].is_template


def test_warnings_do_not_refuse() -> None:
    answer = validated(author([AdmissionWarning("slow")]), "CREATE", widget({"size": "s"}))

    assert answer == {"allowed": True, "warnings": ["slow"]}


def test_the_validator_receives_typed_objects() -> None:
    validator = author(())
    old = widget({"size": "s"}, labels={"a": "b"}, annotations={"c": "d"})
    new = widget({"size": "m", "providerID": "x://1"}, labels={"a": "b"}, annotations={"c": "d"})

    assert validated(validator, "UPDATE", new, old) == {"allowed": True}
    before, after = validator.seen
    assert (before.spec.size, after.spec.size) == ("s", "m")
    assert (after.name, after.namespace, after.is_template) == ("w", "default", False)
    assert (after.labels, after.annotations) == ({"a": "b"}, {"c": "d"})


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (widget({"size": 1}, finalizers=[]), widget({"size": 1}, finalizers=["f"])),
        (widget({"size": 1, "providerID": "x://1"}), widget({"size": 1})),
        (widget({"size": "m"}, deletionTimestamp=DELETED), widget({"size": "s"})),
        (widget(None), widget({})),
    ],
)
def test_what_exists_can_be_finished_although_it_is_invalid(new: Any, old: Any) -> None:
    """Proves: MV-08."""
    validator = author([ERROR])

    assert validated(validator, "UPDATE", new, old) == {"allowed": True}
    assert validator.seen == []


def test_a_changed_spec_is_validated() -> None:
    answer = validated(author([ERROR]), "UPDATE", widget({"size": "m"}), widget({"size": "s"}))

    assert answer["status"]["details"]["causes"][0]["field"] == "spec.size"


def test_an_object_from_before_can_be_repaired() -> None:
    validator = author(())

    assert validated(validator, "UPDATE", widget({"size": "s"}), widget({"size": 1}))["allowed"]
    assert len(validator.seen) == 1, "the old object cannot be read: that is a creation"


def test_a_spec_that_cannot_be_read_is_invalid() -> None:
    answer = validated(author(()), "CREATE", template({"size": "s", "disks": [{"sizeGiB": "x"}]}))

    assert answer["status"]["message"].endswith(
        "spec.template.spec.disks[0].sizeGiB: Invalid value: expected a whole number, found 'x'"
    )


def test_deletions_are_validated_but_not_those_of_a_move() -> None:
    """Proves: MV-08."""
    old = widget({"size": "s"})

    assert validated(author([ERROR]), "DELETE", None, old)["status"]["code"] == 422
    assert validated(author([ERROR]), "DELETE", None, widget({"size": 1})) == {"allowed": True}
    moved = widget({"size": "s"}, annotations=MOVED)
    assert validated(author([ERROR]), "DELETE", None, moved) == {"allowed": True}


def test_updates_are_validated_like_creations_and_deletions_not_by_default() -> None:
    class Small(Validator[Any]):
        def validate_create(self, obj: Any) -> Iterator[FieldError]:
            yield ERROR

    new, old = widget({"size": "m"}), widget({"size": "s"})
    assert validated(Small, "UPDATE", new, old)["status"]["code"] == 422
    assert validated(Small, "DELETE", None, old) == {"allowed": True}


def test_generators_run_in_a_thread_and_have_an_end() -> None:
    threads = set()

    def endless(obj: Any) -> Iterator[FieldError]:
        while True:
            threads.add(threading.current_thread())
            yield ERROR

    answer = validated(author(endless), "CREATE", widget({"size": "s"}))

    assert len(answer["status"]["details"]["causes"]) == MAX_RESULTS
    assert threading.current_thread() not in threads


def test_methods_may_be_asynchronous() -> None:
    class Later(Validator[Any]):
        async def validate_create(self, obj: Any) -> list[FieldError]:
            return [ERROR]

    answer = validated(Later, "CREATE", widget({"size": "s"}))
    assert answer["status"]["code"] == 422


@pytest.mark.parametrize("result", [ValueError("token=secret"), [KeyError("secret")], 7, None])
def test_errors_of_the_author_show_no_details(result: Any) -> None:
    answer = validated(author(result), "CREATE", widget({"size": "s"}))

    assert answer["allowed"] is False
    assert (answer["status"]["code"], answer["status"]["reason"]) == (500, "InternalError")
    assert "secret" not in str(answer)
    name = "ValueError" if isinstance(result, ValueError) else "TypeError"
    assert answer["status"]["message"] == (
        f"Widget-validation raised {name}: see the log of the manager"
    )


def test_the_api_server_gets_a_response_in_time() -> None:
    release = threading.Event()

    try:
        hangs = author(lambda obj: release.wait(60))
        answer = validated(hangs, "CREATE", widget({"size": "s"}), timeout_seconds=1)
    finally:
        release.set()

    assert (
        answer["status"]["message"] == "Widget-validation took too long: see the log of the manager"
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"request": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"apiVersion": "admission.k8s.io/v1beta1", "request": {}}',
        b'{"apiVersion": "admission.k8s.io/v1", "request": {}}',
        b'{"apiVersion": "admission.k8s.io/v1", "request": {"uid": "7", "operation": "CONNECT"}}',
    ],
)
def test_other_bodies_are_refused(body: bytes) -> None:
    validator = author([ERROR])

    assert send(validator, "validate", body).status == 400
    assert validator.seen == []


@pytest.mark.parametrize(
    "changes",
    [
        {"kind": {"group": GROUP, "kind": "Other"}},
        {"kind": {"group": "other.example.com", "kind": "Widget"}},
        {"kind": {"group": GROUP, "kind": "WidgetTemplate"}},
        {"object": None},
        {"object": {"spec": {}}},
        {"operation": ["CREATE"]},
    ],
)
def test_requests_about_other_objects_are_refused(changes: dict[str, Any]) -> None:
    body = review("CREATE", widget({"size": "s"}))
    body["request"] |= changes

    response = send(author(()), "validate", json.dumps(body).encode(), template="")
    assert response.status == 400


def test_threads_of_one_kind_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    created = []
    original = HandlerExecutor.__init__

    def spied(self: HandlerExecutor, *args: Any, **options: Any) -> None:
        created.append(options)
        original(self, *args, **options)

    monkeypatch.setattr(HandlerExecutor, "__init__", spied)
    validated(author(()), "CREATE", widget({"size": "s"}), timeout_seconds=3)

    assert created == [{"threads": 4, "timeout": 2.5}]
