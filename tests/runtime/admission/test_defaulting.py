"""Responses of the mutating webhook: patches to the author's fields, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from capsmith_runtime.admission import AdmissionObject
from tests.runtime.admission.requests import (
    Disk,
    WidgetSpec,
    author,
    defaulted,
    review,
    reviewed,
    template,
    widget,
)

Widget = AdmissionObject[WidgetSpec]


def zone(obj: Widget) -> WidgetSpec:
    return obj.spec if obj.spec.zone else replace(obj.spec, zone=f"{obj.spec.size}-zone")


def changed(**changes: Any) -> type[Any]:
    return author(lambda obj: replace(obj.spec, **changes))


def test_missing_fields_are_filled_in() -> None:
    found = defaulted(author(zone), widget({"size": "s", "providerID": "x://1"}))

    assert found["spec"] == {"size": "s", "providerID": "x://1", "zone": "s-zone"}


def test_templates_receive_the_same_defaults() -> None:
    found = defaulted(author(zone), template({"size": "s"}))

    assert found["spec"] == {"template": {"spec": {"size": "s", "zone": "s-zone"}}}


def test_an_unchanged_spec_has_no_patch() -> None:
    """Defaults of the type are not written: the CRD may have other ones."""
    obj = widget({"size": "s", "zone": None, "disks": [], "unknown": {"a": None}})

    answer = reviewed(author(lambda obj: obj.spec), "mutate", review("CREATE", obj))
    assert answer == {"allowed": True}


@pytest.mark.parametrize(
    ("spec", "changes", "expected"),
    [
        ({"root": {"type": "a", "x": 1}}, {"root": Disk(size=20, type="a")}, {"sizeGiB": 20}),
        ({"root": {"type": "a", "x": 1}}, {"root": Disk()}, {"type": None}),
    ],
)
def test_nested_fields_are_changed_one_by_one(spec: Any, changes: Any, expected: Any) -> None:
    found = defaulted(changed(**changes), widget({"size": "s", **spec}))

    wanted = {**spec["root"], **expected}
    assert found["spec"]["root"] == {key: item for key, item in wanted.items() if item is not None}


def test_whole_values_are_added() -> None:
    cls = changed(root=Disk(size=20), disks=(Disk(), Disk(type="b")), tags={"a/b~c": "d"})
    found = defaulted(cls, widget({"size": "s", "tags": {"e": "f"}}))

    assert found["spec"] == {
        "size": "s",
        "root": {"sizeGiB": 20},
        "disks": [{"sizeGiB": 10}, {"sizeGiB": 10, "type": "b"}],
        "tags": {"a/b~c": "d"},
    }


def test_a_field_can_be_removed() -> None:
    found = defaulted(changed(zone=None), widget({"size": "s", "zone": "z"}))

    assert found["spec"] == {"size": "s"}


def test_defaults_are_stable() -> None:
    """Proves: TP-07."""
    once = defaulted(author(zone), widget({"size": "s"}))

    assert reviewed(author(zone), "mutate", review("CREATE", once)) == {"allowed": True}


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (widget({"size": "s"}, labels={"a": "b"}), widget({"size": "s"})),
        (widget({"size": "m"}, deletionTimestamp="2026-01-01T00:00:00Z"), widget({"size": "s"})),
    ],
)
def test_updates_that_are_not_about_the_spec_stay_as_they_are(new: Any, old: Any) -> None:
    cls = author(zone)

    assert defaulted(cls, new, old) == new
    assert cls.seen == []


def test_a_changed_spec_receives_defaults() -> None:
    found = defaulted(author(zone), widget({"size": "m"}), widget({"size": "s", "zone": "s-zone"}))

    assert found["spec"] == {"size": "m", "zone": "m-zone"}


def test_the_schema_check_follows_and_reports_what_cannot_be_read() -> None:
    specs: list[Any] = [{}, {"size": 1}, None, [], {"size": "s", "disks": {}}]
    for spec in specs:
        assert defaulted(author(zone), widget(spec)) == widget(spec)


@pytest.mark.parametrize("result", [None, {"size": "s"}, ValueError("secret"), Disk()])
def test_errors_of_the_author_show_no_details(result: Any) -> None:
    answer = reviewed(author(result), "mutate", review("CREATE", widget({"size": "s"})))

    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
    assert "secret" not in str(answer)
    assert "patch" not in answer


def test_values_that_json_cannot_hold_are_an_error() -> None:
    answer = reviewed(
        changed(tags={"a": object()}), "mutate", review("CREATE", widget({"size": "s"}))
    )

    assert answer["status"]["code"] == 500
