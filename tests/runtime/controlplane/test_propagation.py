"""Metadata of the machine template on existing objects."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from capsmith_runtime.controlplane.desired_machine import build_initial_metadata, propagate_metadata

ANNOTATION = "foocontrolplane.controlplane.example.com/propagated"
LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"))
METADATA = st.fixed_dictionaries({"labels": LABELS, "annotations": LABELS})


@settings(deadline=None)
@given(METADATA, METADATA, METADATA)
def test_metadata_follow_the_template_and_keep_the_rest(
    foreign: Any, first: Any, second: Any
) -> None:
    """Proves: CP-20, IM-18."""
    annotation = ANNOTATION
    made = {"metadata": {"name": "m", **build_initial_metadata(foreign, first, annotation)}}
    once = {"metadata": propagate_metadata(made, first, annotation)}
    found = {"metadata": propagate_metadata(once, second, annotation)}

    for part in ("labels", "annotations"):
        values = found["metadata"].get(part, {})
        assert values.items() >= second[part].items()
        for key, value in foreign[part].items():
            taken = first[part].get(key, value) != value or key in second[part]
            touched = key in first[part]
            assert taken or touched or values.get(key) == value
        left = set(values) - {annotation} - set(second[part]) - set(foreign[part])
        assert not left, "keys that the template no longer has are removed"
    assert propagate_metadata(found, second, annotation) == found["metadata"]
    assert found["metadata"]["name"] == "m"


def test_a_value_changed_by_others_is_kept() -> None:
    """Proves: CP-20."""
    annotation = ANNOTATION
    made = {"metadata": build_initial_metadata({}, {"labels": {"a": "x", "b": "x"}}, annotation)}
    made["metadata"]["labels"]["b"] = "mine"

    assert propagate_metadata(made, {}, annotation)["labels"] == {"b": "mine"}


def test_a_record_of_any_shape_is_replaced() -> None:
    """Users can edit it: an error would end each reconcile of the control plane."""
    template = {"labels": {"a": "1"}}
    for text in ("[" * 100_000, '{"labels": ["a"]}', '{"labels": {"a": 1}}', '{"labels": 7}'):
        found = propagate_metadata({"metadata": {"annotations": {"note": text}}}, template, "note")
        assert found["labels"] == {"a": "1"}
        assert found["annotations"]["note"] != text
