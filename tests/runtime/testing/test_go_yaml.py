"""Samples have the values that kubectl reads, in conformance tests as everywhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from capsmith.manifests.parse import read_substituted
from capsmith_runtime.testing.authored_objects import authored_objects
from capsmith_runtime.testing.go_yaml import read_documents
from capsmith_runtime.testing.manifests import Manifests

VALUES = (
    *("y", "Y", "on", "n", "Off", "tRue", "", "~", "NULL", "=", "<<", "08", "010", "0o17", "0o8"),
    *("0X1F", "0b11", "-0b1", "1_000", "0x", "+1", "1e3", "1.e3", "1.0", "-0.0", ".5", ".1_0"),
    *("1e400", "0777", "-9223372036854775809", "18446744073709551615", "1" * 5000, "+.5"),
    *("-.5e3", "12:30", "190:20:30.5", "1.2.3", "2026-01-02", "2026-99-99", "!!str 1"),
    *("!!int '1'", "!!float 1", "!!binary aGk=", "!own a", "!!timestamp 2026-01-02", "&x [1]"),
    *("'y'", '"1e3"', "|-\n  y", "{y: 1, 2: b, 1.5: c, true: d}", "[on, {08: 08}]"),
    *("0xfffffffffff", "01777777777777777777777", "0x10000000000000000", "-1_0.5", "+", "."),
    *("0o", "-0x1"),
)


@pytest.mark.parametrize("value", VALUES)
def test_values_are_those_that_verify_reads(value: str) -> None:
    text = f"kind: A\na: {value}\n"
    (expected,), findings = read_substituted(text, "a.yaml", text)
    assert not findings
    ((line, document),) = read_documents(text)
    assert line == 1
    assert document == dict(expected.document)
    assert type(document["a"]) is type(expected.document["a"])


def test_merges_replace_what_comes_before_them() -> None:
    text = "a: 1\n<<: [{a: 2, b: 2}, {a: 3, b: 3, c: 3}]\nb: 4\n'<<': 5\n"
    assert list(read_documents(text)) == [(1, {"a": 2, "b": 4, "c": 3, "<<": 5})]


def test_documents_have_their_lines_and_null_is_none() -> None:
    assert list(read_documents("---\n---\na: 1\n---\nb: 2\n")) == [(3, {"a": 1}), (5, {"b": 2})]


@pytest.mark.parametrize(
    "text",
    [
        *("a: .inf", "a: !!binary a", "a: !!int x", "a: !!bool 1", "[a]: 1", "<<: [a]", "<<: a"),
        "~: a",
    ],
)
def test_what_kubectl_refuses_is_an_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        _read(text)


def test_samples_have_these_values(tmp_path: Path) -> None:
    (tmp_path / "samples").mkdir()
    sample = "kind: A\nspec: {size: 1e3, on: y, at: 12:30, name: ${NAME:=no}}\n"
    (tmp_path / "samples" / "a.yaml").write_text(sample.replace("${NAME:=no}", "no"))
    expected = {"size": 1000, "true": True, "at": "12:30", "name": False}
    assert Manifests([tmp_path]).sample_spec("A") == expected
    (tmp_path / "samples" / "a.yaml").write_text(sample)
    assert [each["spec"] for each in authored_objects(tmp_path, ["samples"])] == [expected]


def _read(text: str) -> list[Any]:
    return list(read_documents(text))
